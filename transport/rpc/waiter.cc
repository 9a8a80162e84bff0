#include "transport/rpc/waiter.h"

#include <algorithm>

#include "transport/base/steady_time.h"
#include "transport/progress/poll_set.h"
#include "transport/rpc/poll_wait.h"

namespace penstock {
namespace rpc {

void Waiter::Notify() {
  tokens_.fetch_add(1, std::memory_order_seq_cst);
  // Adds the token before checking for sleepers. A sleeper counts itself before
  // it checks for a token. Therefore at least one of the two threads sees the
  // other.
  if (sleepers_.load(std::memory_order_seq_cst) == 0) return;
  std::lock_guard<std::mutex> lock(mu_);
  added_.notify_one();
}

bool Waiter::TryTake() {
  int tokens = tokens_.load(std::memory_order_acquire);
  while (tokens > 0) {
    if (tokens_.compare_exchange_weak(tokens, tokens - 1,
                                      std::memory_order_acq_rel)) {
      return true;
    }
  }
  return false;
}

bool Waiter::SleepUntil(absl::Time deadline) {
  // Limits a sleep, so that an infinite timeout does not overflow the clock.
  constexpr absl::Duration kLongest = absl::Hours(1);
  std::unique_lock<std::mutex> lock(mu_);
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  while (tokens_.load(std::memory_order_seq_cst) <= 0) {
    const absl::Duration left =
        std::min(deadline - base::SteadyNow(), kLongest);
    if (left <= absl::ZeroDuration()) break;
    added_.wait_for(lock, absl::ToChronoNanoseconds(left));
  }
  sleepers_.fetch_sub(1, std::memory_order_relaxed);
  return has_token();
}

bool Waiter::PollOrSleepUntil(absl::Time deadline) {
  while (!TryTake()) {  // another thread may have taken the token
    if (!PollUntil(
            mode_, deadline, [this] { return has_token(); },
            [this, deadline] { return SleepUntil(deadline); })) {
      return false;
    }
  }
  return true;
}

bool Waiter::Wait(absl::Duration timeout) {
  if (TryTake()) return true;
  if (timeout > absl::ZeroDuration()) {
    return PollOrSleepUntil(base::SteadyNow() + timeout);
  }
  progress::PollSet::Get()->PollAll();
  return TryTake();
}

}  // namespace rpc
}  // namespace penstock
