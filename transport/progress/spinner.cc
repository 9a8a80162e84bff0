#include "transport/progress/spinner.h"

#include <sched.h>

#include <algorithm>

#include "transport/base/steady_time.h"
#include "transport/progress/spin_pace.h"

namespace penstock {
namespace progress {

Spinner::Spun Spinner::PollFor(absl::Time start, absl::Duration budget,
                               const Turn& look) {
  thread_local SpinPace pace;
  // Checks the descriptors after each poll if the set is empty. Otherwise
  // checks less often, because a check is a system call and costs as much as
  // many polls.
  const bool has_paths = !set_->empty();
  RealTimeSpin spin(policy_.Budget(start) == absl::InfiniteDuration(),
                    RealTimeCores::OfProcess(set_->max_spinners()));
  bool all = turns_.Take(Turns::Source::kColdPaths, start);
  pace.Resume(start);
  for (int polls = 1;; ++polls) {
    all |= polls % SpinPace::kMostRounds == 0;
    if (all ? set_->PollAll() : set_->PollHot()) return Spun::kFound;
    all = false;
    if (!pace.OnRound() && has_paths) continue;
    const absl::Time polled = base::SteadyNow();
    pace.Look(polled);
    if (look()) return Spun::kFound;
    const absl::Time now = base::SteadyNow();
    if (now - start >= budget) return Spun::kIdle;
    if (!spin.MayGoOn(IsRealTime(now)) || policy_.EndsSpins(now)) {
      return Spun::kNot;
    }
    sched_yield();  // other threads, such as the peer's, may need the core
    const absl::Time back = base::SteadyNow();
    policy_.RecordYield(back - now, back, &losses_);
    pace.Resume(back);
  }
}

Spinner::Spun Spinner::Spin(absl::Time start, absl::Duration budget,
                            const Turn& look) {
  Spun result = Spun::kNot;
  while (set_->BeginSpin()) {
    result = PollFor(start, budget, look);
    // Records input that arrived before the path was armed, as EndSpin() found.
    // No doorbell rings for such input.
    if (set_->EndSpin()) has_left_input_ = true;
    if (!has_left_input_) return result;
    if (PollLeftInput()) return Spun::kFound;
    if (result == Spun::kFound) return result;
    start = base::SteadyNow();
  }
  return result;
}

// Polls until the set has no input, but at most for kTurnNanos. Returns true if
// there was input.
bool Spinner::PollLeftInput() {
  const absl::Time end =
      base::SteadyNow() + absl::Nanoseconds(Turns::kTurnNanos);
  bool any = false;
  has_left_input_ = true;
  while (has_left_input_ && base::SteadyNow() < end) {
    has_left_input_ = set_->PollAll();
    any |= has_left_input_;
  }
  return any;
}

void Spinner::Wait(bool watches, const Turn& look, const Turn& sleep) {
  if (!watches && set_->empty()) {
    sleep();
    return;
  }
  const absl::Time start = base::SteadyNow();
  // Calls look(), which serves the sockets, if the sockets' turn is due.
  // Otherwise pollables that always have input could keep this thread from
  // serving the sockets.
  if (!set_->empty() && turns_.Take(Turns::Source::kSockets, start) && look()) {
    return;
  }
  if (has_left_input_ && PollLeftInput()) return;
  const absl::Duration wanted = policy_.Budget(start);
  const absl::Duration budget =
      std::min(wanted, absl::Nanoseconds(SpinPolicy::kMaxNanos));
  Spun spun = Spun::kNot;
  if (budget > absl::ZeroDuration()) spun = Spin(start, budget, look);
  bool found = spun == Spun::kFound;
  // Sleeps. In busy mode, sleeps only if other threads need the core.
  const bool sleeps = spun == Spun::kNot || wanted != absl::InfiniteDuration();
  if (!found) found = sleeps ? sleep() : look();
  policy_.Record(found, base::SteadyNow() - start);
}

}  // namespace progress
}  // namespace penstock
