#include "transport/progress/spinner.h"

#include <sched.h>

#include <algorithm>

#include "transport/base/steady_time.h"

namespace penstock {
namespace progress {

bool Spinner::PollFor(absl::Duration budget, const Turn& look) {
  constexpr int kPollsPerLook = 8;
  const absl::Time start = base::SteadyNow();
  for (int polls = 1;; ++polls) {
    const bool looks = polls % kPollsPerLook == 0;
    if (looks ? set_->PollAll() : set_->PollHot()) return true;
    if (!looks) continue;
    if (look()) return true;
    const absl::Time now = base::SteadyNow();
    if (now - start >= budget) return false;
    sched_yield();  // other threads, such as the peer's, may need the core
    const absl::Time back = base::SteadyNow();
    policy_.RecordYield(back - now, back, &losses_);
  }
}

Spinner::Spun Spinner::Spin(absl::Duration budget, const Turn& look) {
  Spun result = Spun::kNot;
  while (set_->BeginSpin()) {
    result = PollFor(budget, look) ? Spun::kFound : Spun::kIdle;
    const bool more = set_->EndSpin();
    if (!more) return result;
    // No doorbell was rung for what came before the path was armed again.
    while (set_->PollAll()) {
      result = Spun::kFound;
    }
    if (result == Spun::kFound) return result;
  }
  return result;
}

void Spinner::Wait(const Turn& look, const Turn& sleep) {
  if (set_->empty()) {
    sleep();
    return;
  }
  const absl::Time start = base::SteadyNow();
  const absl::Duration budget =
      std::min(policy_.Budget(start), absl::Nanoseconds(SpinPolicy::kMaxNanos));
  Spun spun = Spun::kNot;
  if (budget > absl::ZeroDuration()) spun = Spin(budget, look);
  bool found = spun == Spun::kFound;
  // In busy mode a thread sleeps only if enough others spin already, because it
  // would take their cores.
  const bool sleeps =
      spun == Spun::kNot || policy_.Budget(start) != absl::InfiniteDuration();
  if (!found) found = sleeps ? sleep() : look();
  policy_.Record(found, base::SteadyNow() - start);
}

}  // namespace progress
}  // namespace penstock
