#include "transport/connection/path_poller.h"

#include <cstdint>
#include <utility>

#include "transport/progress/fork_count.h"

namespace penstock {
namespace connection {

// An entry of the PollSet. Keeps the path and the owner alive while a thread
// may poll.
class PathPoller::Polled : public progress::Pollable {
 public:
  Polled(Owner* owner, std::shared_ptr<fabric::Endpoint> path)
      : owner_(owner), path_(std::move(path)) {
    owner_->Ref();
  }
  ~Polled() override { owner_->Unref(); }

  bool Poll() override { return !IsForeign() && owner_->PollPath(); }
  bool HasInput() const override { return !IsForeign() && path_->HasInput(); }
  // Does nothing in a forked child, because the flag is in memory that the
  // parent shares with the peer.
  void SetArmed(bool armed) override {
    if (!IsForeign()) path_->SetArmed(armed);
  }

 private:
  // Returns true if this object is a copy in a forked child.
  bool IsForeign() const { return fork_count_ != progress::ForkCount(); }

  const uint32_t fork_count_ = progress::ForkCount();
  Owner* const owner_;
  const std::shared_ptr<fabric::Endpoint> path_;
};

void PathPoller::Watch(std::shared_ptr<fabric::Endpoint> path) {
  mu_->AssertHeld();
  if (path == path_) return;
  if (path_ != nullptr) {
    WithdrawOffer();
    progress::PollSet::Get()->Remove(slot_);
  }
  path_ = std::move(path);
  if (path_ == nullptr) return;
  slot_ =
      progress::PollSet::Get()->Add(std::make_shared<Polled>(owner_, path_));
  OfferToGiveUp();
  if (path_->HasInput()) Schedule();
}

void PathPoller::PollUntilEmpty(int polls) {
  std::shared_ptr<fabric::Endpoint> path;
  {
    base::MutexLock lock(mu_);
    path = path_;
  }
  if (path == nullptr || !path->HasInput()) return;
  owner_->PollPath();
  if (!path->HasInput()) return;
  if (polls > 1) {
    Schedule(polls - 1);
  } else {
    owner_->LeaveInput();
  }
}

void PathPoller::Schedule(int polls) {
  owner_->Ref();
  executor_->Post([this, polls] {
    PollUntilEmpty(polls);
    owner_->Unref();
  });
}

void PathPoller::OnWakeup(const std::shared_ptr<fabric::Endpoint>& path) {
  // Polls even if there is no input, because a path may have requested a poll.
  // For example, verbs requests a poll to probe its device.
  owner_->PollPath();
  {
    base::MutexLock lock(mu_);
    if (path != path_) return;
    path->ClearWakeup();
  }
  if (path->HasInput()) Schedule();
}

void PathPoller::OfferToGiveUp() {
  if (!owner_->MayGiveUpPath()) return;
  relief_ = paths::PathRelief::Get();
  relief_id_ = relief_->Add(owner_);
}

// Withdraws the offer to close the path. Does nothing in a forked child, whose
// PathRelief has no offers of the parent.
void PathPoller::WithdrawOffer() {
  if (relief_ == nullptr) return;
  if (relief_ == paths::PathRelief::Get()) relief_->Remove(relief_id_);
  relief_ = nullptr;
}

}  // namespace connection
}  // namespace penstock
