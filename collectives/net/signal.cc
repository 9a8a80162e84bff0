#include "collectives/net/signal.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstdint>

#include "absl/time/time.h"
#include "transport/base/steady_time.h"
#include "transport/progress/spin_policy.h"

namespace penstock::collectives {
namespace {

// The number of checks between two checks of the clock: about 1 us.
constexpr int kLooksPerClock = 64;

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

void Signal::Notify() {
  // Changes count_ before reading sleepers_, while a sleeper changes sleepers_
  // before reading count_. At least one of the two thus sees the other's
  // change.
  count_.fetch_add(1, std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_seq_cst) == 0) return;
  syscall(SYS_futex, &count_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

void Signal::Await(uint32_t seen, absl::Duration most) {
  if (count() != seen) return;
  const absl::Time begun = base::SteadyNow();
  if (!Spin(seen, begun, most)) Sleep(seen, most);
  policy_.Record(count() != seen, base::SteadyNow() - begun);
}

bool Signal::Spin(uint32_t seen, absl::Time begun, absl::Duration most) {
  const absl::Duration budget =
      std::min({policy_.Budget(begun), most,
                absl::Nanoseconds(progress::SpinPolicy::kMaxNanos)});
  if (budget <= absl::ZeroDuration()) return false;
  // Counts lost cores. The thread sleeps only after losses in several
  // consecutive waits.
  thread_local progress::CoreLosses losses;
  while (true) {
    for (int i = 0; i < kLooksPerClock; ++i) {
      if (count() != seen) return true;
      Pause();
    }
    const absl::Time now = base::SteadyNow();
    if (now - begun >= budget) return false;
    sched_yield();  // the thread that receives may need this core
    const absl::Time back = base::SteadyNow();
    policy_.RecordYield(back - now, back, &losses);
  }
}

void Signal::Sleep(uint32_t seen, absl::Duration most) {
  const timespec nap = absl::ToTimespec(most);
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  if (count_.load(std::memory_order_seq_cst) == seen) {
    syscall(SYS_futex, &count_, FUTEX_WAIT_PRIVATE, seen, &nap, nullptr, 0);
  }
  sleepers_.fetch_sub(1, std::memory_order_seq_cst);
}

}  // namespace penstock::collectives
