#include "cli/interrupt.h"

#include <signal.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>

#include "absl/time/clock.h"
#include "transport/base/steady_time.h"

namespace penstock::cli {
namespace {

// The time after the first signal, in milliseconds, within which another signal
// counts as a duplicate.
constexpr int64_t kAgainMs = 500;

// The time of the first signal, in milliseconds; 0 if there was none.
std::atomic<int64_t> interrupted_at{0};
static_assert(std::atomic<int64_t>::is_always_lock_free, "for a handler");

int64_t NowMs() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1000000 + 1;
}

void Remember(int number) {
  const int error = errno;
  const int64_t now = NowMs();
  int64_t first = 0;
  if (!interrupted_at.compare_exchange_strong(first, now) &&
      now - first >= kAgainMs) {
    signal(number, SIG_DFL);
    raise(number);  // delivered when the handler returns
  }
  errno = error;
}

}  // namespace

void WatchInterrupts() {
  struct sigaction action = {};
  action.sa_handler = Remember;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

bool Interrupted() { return interrupted_at.load() != 0; }

void SleepUntil(absl::Time time) {
  // Limits a single sleep, and thus the delay until a signal is noticed. A
  // signal does not end a sleep if another thread receives the signal, or if it
  // arrives just before the sleep.
  constexpr absl::Duration kLook = absl::Milliseconds(50);
  while (!Interrupted()) {
    const absl::Duration left = time - base::SteadyNow();
    if (left <= absl::ZeroDuration()) return;
    absl::SleepFor(std::min(left, kLook));
  }
}

}  // namespace penstock::cli
