#include "transport/progress/real_time.h"

#include <sched.h>

namespace penstock {
namespace progress {
namespace {

bool AskKernel() {
  switch (sched_getscheduler(0) & ~SCHED_RESET_ON_FORK) {
    case SCHED_FIFO:
    case SCHED_RR:
    case SCHED_DEADLINE:
      return true;
    default:  // ordinary policies, and -1 where the call is forbidden
      return false;
  }
}

}  // namespace

bool IsRealTime(absl::Time now) {
  thread_local absl::Time next_look = absl::InfinitePast();
  thread_local bool is_real_time = false;
  if (now >= next_look) {
    is_real_time = AskKernel();
    next_look = now + absl::Nanoseconds(kRealTimeLookNanos);
  }
  return is_real_time;
}

RealTimeCores* RealTimeCores::OfProcess(int cores) {
  static auto* const of_process = new RealTimeCores(cores);
  return of_process;
}

}  // namespace progress
}  // namespace penstock
