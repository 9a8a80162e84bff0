// What there is to say of one connection, for people.

#ifndef PENSTOCK_TRANSPORT_METRICS_CONNECTION_INFO_H_
#define PENSTOCK_TRANSPORT_METRICS_CONNECTION_INFO_H_

#include <cstdint>
#include <string>

#include "transport/metrics/histogram.h"
#include "transport/metrics/labels.h"

namespace penstock {
namespace metrics {

// Texts may come from the peer. See PathReport in penstock.h for most of it.
// What was counted was counted since the connection began, over all its paths.
struct ConnectionInfo {
  struct Traffic {
    uint64_t messages = 0;
    uint64_t bytes = 0;
  };

  // Within the process, as in a trace; 0 for connections over HTTP/2. No other
  // connection has had it.
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
  Traffic traffic[kKinds][kDirections];  // the parts of these sums
  uint64_t announced_unreleased = 0;     // at present
  uint64_t streams_started = 0;
  uint64_t streams_reset = 0;
  uint64_t streams = 0;  // open
  uint64_t paths_lost = 0;
  uint64_t paths_regained = 0;
  uint64_t credit_stalls = 0;
  uint64_t credit_stall_ns = 0;
  uint64_t window_stalls = 0;
  // As the metrics of the process, which say what they measure.
  Histogram client_streams;
  Histogram announced;
};

}  // namespace metrics
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_METRICS_CONNECTION_INFO_H_
