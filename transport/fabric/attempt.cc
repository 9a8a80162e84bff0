#include "transport/fabric/attempt.h"

#include "absl/memory/memory.h"
#include "transport/progress/event_loop.h"

namespace penstock {
namespace fabric {

ConnectCallback Attempt::Take() {
  base::MutexLock lock(&mu_);
  return std::exchange(done_, nullptr);
}

void Attempt::Finish(absl::StatusOr<std::unique_ptr<Endpoint>> result) {
  ConnectCallback done = Take();
  if (done) done(std::move(result));
}

bool Attempt::pending() const {
  base::MutexLock lock(&mu_);
  return static_cast<bool>(done_);
}

AttemptHandle::~AttemptHandle() {
  attempt_->Cancel();
  if (clean_up_) clean_up_();
}

std::unique_ptr<PendingConnect> FailLater(std::shared_ptr<Attempt> attempt,
                                          absl::Status error) {
  absl::StatusOr<progress::EventLoop*> loop = progress::EventLoop::Get();
  if (loop.ok()) {
    (*loop)->Post([attempt, error] { attempt->Finish(error); });
  } else {
    // Calls back immediately, because there is no event loop to call later.
    attempt->Finish(error);
  }
  return absl::make_unique<AttemptHandle>(std::move(attempt), nullptr);
}

}  // namespace fabric
}  // namespace penstock
