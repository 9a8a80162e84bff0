#include "frameworks/torch/engine.h"

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "collectives/group.h"
#include "frameworks/torch/mailbox.h"
#include "frameworks/torch/rendezvous.h"
#include "frameworks/torch/task_queue.h"
#include "frameworks/torch/workers.h"
#include "transport/base/mutex.h"
#include "transport/progress/fork_count.h"

namespace penstock {
namespace pytorch {

Engine::Engine(std::unique_ptr<collectives::Group> group)
    : fork_count_(progress::ForkCount()),
      workers_(std::make_unique<Workers>()),
      collectives_(std::make_shared<TaskQueue>(workers_.get())),
      group_(std::move(group)) {}

absl::StatusOr<std::unique_ptr<Engine>> Engine::Start(FormedGroup formed) {
  std::unique_ptr<Engine> engine(new Engine(std::move(formed.group)));
  auto mailbox = Mailbox::Open(engine->group().get(), formed.address,
                               engine->workers_.get());
  if (!mailbox.ok()) return mailbox.status();
  engine->mailbox_ = *std::move(mailbox);
  return engine;
}

Engine::~Engine() {
  if (forked()) {
    // Leaks all members in a forked child, where their threads do not exist and
    // their locks may be held for ever.
    (void)workers_.release();
    (void)new std::shared_ptr<TaskQueue>(std::move(collectives_));
    (void)new std::shared_ptr<collectives::Group>(std::move(group_));
    (void)mailbox_.release();
    return;
  }
  if (!collectives_->idle()) {
    Abort();
    // Waits until the last task has ended, because the task uses the Backend
    // and the Workers.
    collectives_->RunHere([] {});
  }
  mailbox_.reset();
  workers_.reset();
}

std::shared_ptr<collectives::Group> Engine::group() {
  base::MutexLock lock(&mu_);
  return group_;
}

bool Engine::forked() const { return progress::ForkCount() != fork_count_; }

void Engine::Abort() {
  // Returns in a forked child, where a lock of the parent may be held for ever.
  if (forked()) return;
  const std::shared_ptr<collectives::Group> group = this->group();
  if (group != nullptr) group->Abort();
  if (mailbox_ != nullptr) {
    mailbox_->End(absl::CancelledError("the group was aborted"));
  }
}

void Engine::Close() {
  if (forked()) return;
  std::shared_ptr<collectives::Group> group;
  collectives_->RunHere([&] {
    base::MutexLock lock(&mu_);
    group = std::move(group_);
  });
  mailbox_->End(absl::FailedPreconditionError("the group was shut down"));
}

}  // namespace pytorch
}  // namespace penstock
