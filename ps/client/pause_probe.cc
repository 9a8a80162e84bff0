#include "ps/client/pause_probe.h"

#include <algorithm>
#include <utility>

#include "ps/client/reader.h"
#include "transport/base/steady_time.h"

namespace penstock::ps {
namespace {

// The time between two pulls: short compared with the measured pauses.
constexpr absl::Duration kEvery = absl::Milliseconds(5);
// Limits one attempt of a pull. The destructor waits for a running attempt.
constexpr absl::Duration kAttempt = absl::Seconds(1);

}  // namespace

PauseProbe::PauseProbe(std::shared_ptr<const TrainingConnection> connection,
                       absl::Duration timeout)
    : connection_(std::move(connection)),
      timeout_(timeout),
      thread_([this] { ThreadLoop(); }) {}

PauseProbe::~PauseProbe() {
  {
    base::SteadyMutexLock lock(&mu_);
    stop_ = true;
  }
  thread_.join();
}

PauseProbe::Pauses PauseProbe::pauses() const {
  base::SteadyMutexLock lock(&mu_);
  Pauses pauses = pauses_;
  pauses.longest = std::max(pauses.longest, base::SteadyNow() - begun_);
  return pauses;
}

bool PauseProbe::MayRepeat(absl::Time limit) const {
  base::SteadyMutexLock lock(&mu_);
  return !stop_ && base::SteadyNow() < limit;
}

void PauseProbe::ThreadLoop() {
  PullSpec nothing;
  nothing.all_dense = false;
  Reader reader(connection_);
  while (true) {
    const absl::Time begun = base::SteadyNow();
    {
      base::SteadyMutexLock lock(&mu_);
      begun_ = begun;
    }
    absl::Status pulled;
    do {
      pulled = reader.Pull(0, nothing, std::min(timeout_, kAttempt)).status();
    } while (!pulled.ok() && MayRepeat(begun + timeout_));
    base::SteadyMutexLock lock(&mu_);
    begun_ = absl::InfiniteFuture();
    pauses_.longest = std::max(pauses_.longest, base::SteadyNow() - begun);
    ++pauses_.pulls;
    pauses_.failure = pulled;
    if (!pulled.ok()) return;
    const auto is_over = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return stop_;
    };
    if (mu_.AwaitFor(kEvery, is_over)) return;
  }
}

}  // namespace penstock::ps
