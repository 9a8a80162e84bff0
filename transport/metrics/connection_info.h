// What there is to say of one connection, for people.

#ifndef PENSTOCK_TRANSPORT_METRICS_CONNECTION_INFO_H_
#define PENSTOCK_TRANSPORT_METRICS_CONNECTION_INFO_H_

#include <cstdint>
#include <string>

#include "transport/metrics/labels.h"

namespace penstock {
namespace metrics {

// Texts may come from the peer. See PathReport in penstock.h for most of it.
struct ConnectionInfo {
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
  uint64_t streams_started = 0;
  uint64_t streams = 0;  // open
};

}  // namespace metrics
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_METRICS_CONNECTION_INFO_H_
