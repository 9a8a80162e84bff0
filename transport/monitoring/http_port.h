// Serves the metrics of this process over HTTP.

#ifndef PENSTOCK_TRANSPORT_MONITORING_HTTP_PORT_H_
#define PENSTOCK_TRANSPORT_MONITORING_HTTP_PORT_H_

#include "absl/status/statusor.h"
#include "transport/settings/http_address.h"

namespace penstock {
namespace monitoring {

// Serves GET /metrics at `address` for as long as the process lives, on its own
// threads, which take no signals. Returns the port. Returns UNAVAILABLE if the
// process cannot listen there. The child of a fork closes its copy of the
// socket, and serves nothing. Thread-safe.
//
// Strangers cannot keep a scraper out:
// - EventLoop::GetForMonitoring() carries all connections, and Aside::kStatus
//   collects once for all clients that ask meanwhile.
// - At most 64 clients, 32 of one host, may be slow to read an answer, and as
//   many may have an incomplete head. Above a limit, the oldest client of the
//   host that has the most is dropped.
// - Every complete request is answered. While 64 clients wait for an answer,
//   others wait in the backlog.
absl::StatusOr<int> ServeHttp(const HttpAddress& address);

}  // namespace monitoring
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_MONITORING_HTTP_PORT_H_
