#include "ps/client/checkpoint_turn_keeper.h"

#include "absl/time/time.h"

namespace penstock::ps {
namespace {

// A turn ends after 30 seconds of silence, so one renewal may be lost.
constexpr absl::Duration kInterval = absl::Seconds(7);
constexpr absl::Duration kTimeout = absl::Seconds(3);

}  // namespace

CheckpointTurnKeeper::CheckpointTurnKeeper(const TrainingConnection& connection,
                                           const v1::CheckpointAttempt& attempt)
    : server_({connection.channels()[0]}) {
  *renewal_.mutable_view() = connection.view();
  *renewal_.mutable_attempt() = attempt;
  thread_ = std::thread([this] { ThreadLoop(); });
}

CheckpointTurnKeeper::~CheckpointTurnKeeper() {
  {
    absl::MutexLock lock(&mu_);
    stop_ = true;
    wake_.Signal();
  }
  thread_.join();
}

void CheckpointTurnKeeper::ThreadLoop() {
  while (true) {
    {
      absl::MutexLock lock(&mu_);
      const absl::Time next = base::SteadyNow() + kInterval;
      while (!stop_ && base::SteadyNow() < next) wake_.WaitUntil(&mu_, next);
      if (stop_) return;
    }
    server_.Call("AttendCheckpoint", renewal_, kTimeout).status().IgnoreError();
  }
}

}  // namespace penstock::ps
