// The server's side of the set-up of stripes.

#ifndef PENSTOCK_TRANSPORT_FABRIC_TCP_STRIPES_LISTENER_H_
#define PENSTOCK_TRANSPORT_FABRIC_TCP_STRIPES_LISTENER_H_

#include <memory>
#include <string>

#include "absl/time/time.h"
#include "transport/base/unique_fd.h"
#include "transport/fabric/attempt.h"
#include "transport/fabric/fabric.h"
#include "transport/fabric/tcp/stripes/address.h"
#include "transport/fabric/tcp/stripes/greeting.h"

namespace penstock {
namespace fabric {
namespace stripes {

// Waits for the stripes of one session. When the peer has opened all of its
// stripes, at most `most`, answers on each stripe, and finishes `attempt` with
// the endpoint. After `limit`, finishes `attempt` with DEADLINE_EXCEEDED. The
// attempt's token names the session. Accepts only sockets from the host of
// `peer`.
std::unique_ptr<PendingConnect> AwaitStripes(std::shared_ptr<Attempt> attempt,
                                             const Address& peer, int most,
                                             absl::Duration limit);

// Passes an accepted socket, whose first bytes were `greeting`, to the session
// that waits for it. Ends the connection if no session waits for this stripe:
// - The token is unknown or used up.
// - The socket comes from another host than the session.
// - The session already has this stripe.
// - The number of stripes differs from the number that the session's other
//   stripes named.
// Returns before the socket is handed over. Thread-safe.
void GiveStripe(base::UniqueFd socket, const Greeting& greeting);

}  // namespace stripes
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_TCP_STRIPES_LISTENER_H_
