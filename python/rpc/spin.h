// Polls on threads of the program.

#ifndef PENSTOCK_PYTHON_RPC_SPIN_H_
#define PENSTOCK_PYTHON_RPC_SPIN_H_

#include <functional>

#include "absl/time/time.h"
#include "transport/progress/spin_policy.h"

namespace penstock::python {

// Returns the polling mode of the thread penstock-poll, which polls only if
// PENSTOCK_POLLING is busy. In other modes the waiting threads poll, and would
// lose their core to another polling thread.
progress::PollingMode LoopPolling();

// Waits on this thread as rpc::PollUntil() does. Call it Unlocked.
bool PollUntil(absl::Time deadline, const std::function<bool()>& is_done,
               const std::function<bool()>& sleep);

}  // namespace penstock::python

#endif  // PENSTOCK_PYTHON_RPC_SPIN_H_
