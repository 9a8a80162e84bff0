// Serves the metrics of this process over HTTP.

#ifndef PENSTOCK_TRANSPORT_MONITORING_HTTP_PORT_H_
#define PENSTOCK_TRANSPORT_MONITORING_HTTP_PORT_H_

#include "absl/status/statusor.h"
#include "transport/settings/http_address.h"

namespace penstock {
namespace monitoring {

// Serves GET /metrics at `address` for as long as the process lives, on
// separate threads, which take no signals. Returns the port. Returns
// UNAVAILABLE if the process cannot listen there. The child of a fork closes
// its copy of the socket, and serves nothing. Thread-safe.
//
// Hostile clients cannot keep a scraper out:
// - EventLoop::GetForMonitoring() serves all clients, and one run of
//   Aside::kStatus collects for all clients that wait.
// - At most 64 clients, 32 of them from one host, may be slow to read an
//   answer. The same limits apply to clients that have sent an incomplete head.
//   Above a limit, the host with the most clients loses its oldest client.
// - Every complete request is answered. While 64 clients wait for an answer,
//   new clients stay in the listen backlog.
absl::StatusOr<int> ServeHttp(const HttpAddress& address);

}  // namespace monitoring
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_MONITORING_HTTP_PORT_H_
