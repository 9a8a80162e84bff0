// Names of abstract UNIX sockets.

#ifndef PENSTOCK_TRANSPORT_FABRIC_SHM_ADDRESS_H_
#define PENSTOCK_TRANSPORT_FABRIC_SHM_ADDRESS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "transport/base/unique_fd.h"

namespace penstock {
namespace fabric {
namespace shm {

// A random name, "penstock-<32 hex digits>": nobody can take it before.
absl::StatusOr<std::string> NewSocketName();

// A socket of packets that listens at `name`; non-blocking.
absl::StatusOr<base::UniqueFd> ListenAt(absl::string_view name);

// A connected one. The peer has not accepted it yet.
absl::StatusOr<base::UniqueFd> ConnectTo(absl::string_view name);

// "<host id>\n<socket name>", and the name in it. INVALID_ARGUMENT for other
// text, UNAVAILABLE for a peer on another host.
absl::StatusOr<std::string> MakeOffer(absl::string_view name);
absl::StatusOr<std::string> SocketNameIn(absl::string_view offer);

}  // namespace shm
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_SHM_ADDRESS_H_
