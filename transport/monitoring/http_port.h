// Serves the metrics of this process over HTTP.

#ifndef PENSTOCK_TRANSPORT_MONITORING_HTTP_PORT_H_
#define PENSTOCK_TRANSPORT_MONITORING_HTTP_PORT_H_

#include "absl/status/statusor.h"
#include "transport/settings/http_address.h"

namespace penstock {
namespace monitoring {

// Answers GET /metrics there for as long as the process lives, on threads of
// its own that take no signals. Returns the port. UNAVAILABLE: it cannot listen
// there. Bounded: at most two answers at a time, each for at most 5 s. The
// child of a fork closes its copy of the socket, and serves nothing.
// Thread-safe.
absl::StatusOr<int> ServeHttp(const HttpAddress& address);

}  // namespace monitoring
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_MONITORING_HTTP_PORT_H_
