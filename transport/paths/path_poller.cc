#include "transport/paths/path_poller.h"

#include <utility>

namespace penstock {
namespace paths {

// Keeps the path and the owner alive while a thread may poll.
class PathPoller::Polled : public progress::Pollable {
 public:
  Polled(Owner* owner, std::shared_ptr<fabric::Endpoint> path)
      : owner_(owner), path_(std::move(path)) {
    owner_->Ref();
  }
  ~Polled() override { owner_->Unref(); }

  bool Poll() override { return owner_->PollPath(); }
  bool HasInput() const override { return path_->HasInput(); }
  void SetArmed(bool armed) override { path_->SetArmed(armed); }

 private:
  Owner* const owner_;
  const std::shared_ptr<fabric::Endpoint> path_;
};

void PathPoller::Watch(std::shared_ptr<fabric::Endpoint> path) {
  if (path == path_) return;
  if (path_ != nullptr) progress::PollSet::Get()->Remove(slot_);
  path_ = std::move(path);
  if (path_ == nullptr) return;
  slot_ =
      progress::PollSet::Get()->Add(std::make_shared<Polled>(owner_, path_));
  if (path_->HasInput()) owner_->SchedulePolling();
}

}  // namespace paths
}  // namespace penstock
