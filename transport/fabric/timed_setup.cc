#include "transport/fabric/timed_setup.h"

#include <utility>

#include "absl/memory/memory.h"
#include "absl/status/status.h"

namespace penstock {
namespace fabric {

std::unique_ptr<PendingConnect> TimedSetup::Launch(
    const std::shared_ptr<TimedSetup>& setup) {
  progress::EventLoop* const loop = setup->loop_;
  loop->Post([setup] {
    if (setup->attempt_->pending()) setup->StartOnLoop();
  });
  std::weak_ptr<TimedSetup> weak = setup;
  return absl::make_unique<AttemptHandle>(setup->attempt_, [weak, loop] {
    loop->Post([weak] {
      if (std::shared_ptr<TimedSetup> late = weak.lock()) late->StopOnLoop();
    });
  });
}

TimedSetup::TimedSetup(progress::EventLoop* loop,
                       std::shared_ptr<Attempt> attempt, absl::Duration limit,
                       std::string late)
    : loop_(loop),
      attempt_(std::move(attempt)),
      limit_(limit),
      late_(std::move(late)) {}

void TimedSetup::StartOnLoop() {
  if (timer_ != 0 || has_ended_) return;
  std::shared_ptr<TimedSetup> self = shared_from_this();
  timer_ = loop_->RunAfter(limit_, [self] {
    self->FinishOnLoop(absl::DeadlineExceededError(self->late_));
  });
  BeginOnLoop();
}

void TimedSetup::StopOnLoop() {
  if (std::exchange(has_ended_, true)) return;
  // Keeps this object alive: otherwise the timer may hold the last reference.
  std::shared_ptr<TimedSetup> self = shared_from_this();
  loop_->Cancel(timer_);
  ReleaseOnLoop();
}

void TimedSetup::FinishOnLoop(
    absl::StatusOr<std::unique_ptr<Endpoint>> result) {
  if (has_ended_) return;
  std::shared_ptr<TimedSetup> self = shared_from_this();
  StopOnLoop();
  attempt_->Finish(std::move(result));
}

}  // namespace fabric
}  // namespace penstock
