#include "cli/interrupt.h"

#include <signal.h>

#include <algorithm>
#include <atomic>

#include "absl/time/clock.h"

namespace penstock::cli {
namespace {

std::atomic<bool> interrupted{false};

void Remember(int) { interrupted.store(true); }

}  // namespace

void WatchInterrupts() {
  struct sigaction action = {};
  action.sa_handler = Remember;
  action.sa_flags = SA_RESETHAND;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

bool Interrupted() { return interrupted.load(); }

void SleepUntil(absl::Time time) {
  // The signal may come to another thread, or just before the sleep.
  constexpr absl::Duration kLook = absl::Milliseconds(50);
  while (!Interrupted()) {
    const absl::Duration left = time - absl::Now();
    if (left <= absl::ZeroDuration()) return;
    absl::SleepFor(std::min(left, kLook));
  }
}

}  // namespace penstock::cli
