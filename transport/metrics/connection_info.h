// The description of one connection, for people.

#ifndef PENSTOCK_TRANSPORT_METRICS_CONNECTION_INFO_H_
#define PENSTOCK_TRANSPORT_METRICS_CONNECTION_INFO_H_

#include <cstdint>
#include <string>

#include "transport/metrics/histogram.h"
#include "transport/metrics/labels.h"

namespace penstock {
namespace metrics {

// The state of one connection. Texts may come from the peer. PathReport in
// penstock.h describes most fields. Counters cover the time since the
// connection began, over all its paths.
struct ConnectionInfo {
  struct Traffic {
    uint64_t messages = 0;
    uint64_t bytes = 0;
  };

  // The number of the connection in the process, also used in traces. Never
  // reused. 0 for connections over HTTP/2.
  uint64_t id = 0;
  Role role = Role::kClient;
  std::string peer;
  std::string path;
  std::string detail;
  std::string reason;
  uint64_t eager_max_bytes = 0;
  uint64_t chunk_bytes = 0;
  uint64_t messages_sent = 0;
  uint64_t messages_received = 0;
  uint64_t bytes_sent = 0;
  uint64_t bytes_received = 0;
  Traffic traffic[kKinds][kDirections];  // the breakdown of the sums above
  uint64_t announced_unreleased = 0;     // at present
  uint64_t streams_started = 0;
  uint64_t streams_reset = 0;
  uint64_t streams = 0;  // open
  uint64_t paths_lost = 0;
  uint64_t paths_regained = 0;
  uint64_t credit_stalls = 0;
  uint64_t credit_stall_ns = 0;
  uint64_t window_stalls = 0;
  // The histograms of the connection, with the same meaning as the metrics of
  // the process.
  Histogram client_streams;
  Histogram announced;
};

}  // namespace metrics
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_METRICS_CONNECTION_INFO_H_
