#include "ps/server/running_time.h"

#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "transport/base/steady_time.h"

namespace penstock::ps {
namespace {

using base::SteadyNow;

// The interval between two beats. Less than half of kLongestGap: a beat may be
// late on a busy machine. Costs a process less than a thousandth of a core.
constexpr absl::Duration kBeat = absl::Milliseconds(40);

// The running time of the process, and the thread that beats. Never destroyed.
class RunningClock {
 public:
  RunningClock() : time_(SteadyNow()) {
    std::thread([this] { BeatLoop(); }).detach();
  }

  absl::Time Now() ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    return time_.At(SteadyNow());
  }

  absl::Time When(absl::Time running) ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    return time_.WhenAt(running, SteadyNow());
  }

 private:
  void BeatLoop() {
    pthread_setname_np(pthread_self(), "penstock-beat");
    while (true) {
      // Sleeps in real time, so that a test with a virtual clock does not skip
      // from beat to beat.
      const timespec beat = absl::ToTimespec(kBeat);
      clock_nanosleep(CLOCK_MONOTONIC, 0, &beat, nullptr);
      absl::MutexLock lock(&mu_);
      time_.Beat(SteadyNow());
    }
  }

  absl::Mutex mu_;
  RunningTime time_ ABSL_GUARDED_BY(mu_);
};

RunningClock& Clock() {
  static RunningClock* const clock = new RunningClock;
  return *clock;
}

}  // namespace

void RunningTime::Beat(absl::Time now) {
  counted_ = At(now);
  beat_ = std::max(beat_, now);
}

absl::Time RunningTime::At(absl::Time now) const {
  const absl::Duration gap = std::max(now - beat_, absl::ZeroDuration());
  return counted_ + std::min(gap, kLongestGap);
}

absl::Time RunningTime::WhenAt(absl::Time running, absl::Time now) const {
  const absl::Duration left = running - At(now);
  return left <= absl::ZeroDuration() ? now : now + std::max(left, kLeastWait);
}

absl::Time RunningNow() { return Clock().Now(); }

absl::Time WhenRunning(absl::Time running) { return Clock().When(running); }

}  // namespace penstock::ps
