#include "transport/event_engine/path_watch.h"

#include <utility>

namespace penstock {
namespace event_engine {
namespace {

// Limits the polls after a doorbell, so that other tasks can run.
constexpr int kPolls = 4;

}  // namespace

class PathWatch::Polled : public progress::Pollable,
                          public std::enable_shared_from_this<Polled> {
 public:
  Polled(Crew* crew, std::shared_ptr<fabric::Endpoint> path,
         PathWatch::Poll poll)
      : crew_(crew), path_(std::move(path)), poll_(std::move(poll)) {}

  bool Poll() override { return poll_(); }
  bool HasInput() const override { return path_->HasInput(); }
  void SetArmed(bool armed) override { path_->SetArmed(armed); }

  void OnDoorbell() {
    poll_();
    path_->ClearWakeup();
    PollUntilEmpty();
  }
  void PollUntilEmpty() {
    for (int i = 0; i < kPolls; ++i) {
      if (!path_->HasInput() || !poll_()) return;
    }
    crew_->Run([self = shared_from_this()] { self->PollUntilEmpty(); });
  }
  std::vector<int> fds() const { return path_->wakeup_fds(); }

 private:
  Crew* const crew_;
  const std::shared_ptr<fabric::Endpoint> path_;
  const PathWatch::Poll poll_;
};

absl::StatusOr<std::unique_ptr<PathWatch>> PathWatch::Create(
    Crew* crew, std::shared_ptr<fabric::Endpoint> path, Poll poll) {
  auto polled =
      std::make_shared<Polled>(crew, std::move(path), std::move(poll));
  const std::vector<int> fds = polled->fds();
  if (fds.empty()) {
    return absl::UnavailableError(
        "no descriptor is left for the path's doorbell: raise ulimit -n");
  }
  std::unique_ptr<PathWatch> watch(new PathWatch(crew, polled));
  for (int fd : fds) {
    absl::StatusOr<Watches::Id> id =
        crew->watches()->Add(fd, [polled] { polled->OnDoorbell(); });
    if (!id.ok()) return id.status();
    watch->watches_.push_back(*id);
  }
  // Delivers the input that arrived before the path was in the set.
  crew->Run([polled] { polled->PollUntilEmpty(); });
  return watch;
}

PathWatch::PathWatch(Crew* crew, std::shared_ptr<Polled> polled)
    : crew_(crew),
      polled_(std::move(polled)),
      slot_(crew->poll_set()->Add(polled_)) {}

PathWatch::~PathWatch() {
  for (Watches::Id id : watches_) crew_->watches()->Remove(id);
  crew_->poll_set()->Remove(slot_);
}

}  // namespace event_engine
}  // namespace penstock
