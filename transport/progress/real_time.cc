#include "transport/progress/real_time.h"

#include <sched.h>

namespace penstock {
namespace progress {

bool IsRealTime() {
  switch (sched_getscheduler(0) & ~SCHED_RESET_ON_FORK) {
    case SCHED_FIFO:
    case SCHED_RR:
    case SCHED_DEADLINE:
      return true;
    default:  // ordinary policies, and -1 where the call is forbidden
      return false;
  }
}

RealTimeCores* RealTimeCores::OfProcess(int cores) {
  static auto* const of_process = new RealTimeCores(cores);
  return of_process;
}

}  // namespace progress
}  // namespace penstock
