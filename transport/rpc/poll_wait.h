// Lets a thread that waits poll before it sleeps.

#ifndef PENSTOCK_TRANSPORT_RPC_POLL_WAIT_H_
#define PENSTOCK_TRANSPORT_RPC_POLL_WAIT_H_

#include <functional>

#include "absl/time/time.h"
#include "transport/progress/spin_policy.h"

namespace penstock {
namespace rpc {

// Waits until is_done() is true, or base::SteadyNow() reaches `deadline`.
// Returns is_done(). Alternates between polling the process's fast paths, for
// as long as `mode` allows, and calling sleep(). sleep() must block until
// is_done() may have changed, at most until the deadline. With
// CallbackThread::kAny, a callback that changes is_done() may run on this
// thread. The first wait of a thread sets the mode for all its waits.
bool PollUntil(progress::PollingMode mode, absl::Time deadline,
               const std::function<bool()>& is_done,
               const std::function<bool()>& sleep);

}  // namespace rpc
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_RPC_POLL_WAIT_H_
