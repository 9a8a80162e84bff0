// Settings of the verbs fabric.

#ifndef PENSTOCK_TRANSPORT_FABRIC_VERBS_OPTIONS_H_
#define PENSTOCK_TRANSPORT_FABRIC_VERBS_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/optional.h"

namespace penstock {
namespace fabric {
namespace verbs {

// Whether memory windows give the peer access to payloads.
enum class Windows {
  kWhereTrusted,  // where the device has them and keeps to them
  kNever,
};

struct Options {
  // Which of the machine's RDMA addresses are used. Empty, 0 and -1: any.
  std::vector<std::string> addresses;  // "10.9.0.1"
  std::string device;                  // "mlx5_0"
  int port = 0;
  int gid_index = -1;
  // The traffic class (DSCP and ECN bits) of RoCE v2, which also selects the
  // service level of InfiniBand; -1: the system's.
  int traffic_class = -1;

  // A lost packet is sent again after 4.096 us * 2^ack_timeout, up to
  // retry_count times: 134 ms and a second in all. Never 7, which some devices
  // take for "for ever".
  uint8_t ack_timeout = 15;
  uint8_t retry_count = 6;
  // What a device had to complete and did not: it hangs, or its link does. Its
  // own retries take a second.
  absl::Duration completion_timeout = absl::Seconds(3);
  // For Connect(), for Listen() and for each connection that was accepted.
  absl::Duration setup_timeout = absl::Seconds(5);
  // Accepted connections that are not established yet.
  size_t max_half_open = 64;

  Windows windows = Windows::kWhereTrusted;
  // Memory per connection, registered as it is needed and kept: for copies of
  // payloads that the peer reads, and for those that are read from it. What
  // does not fit is registered by itself, for as long as it is needed; or, to
  // be exposed without windows, goes over tcp.
  uint64_t exposed_bytes = 32 * 1024 * 1024;
  uint64_t read_bytes = 32 * 1024 * 1024;
  // Of the program's memory that was declared to be stable, what is kept
  // registered where windows are used; less where little may be locked.
  uint64_t cache_bytes = uint64_t{1} << 30;
  // What the process may lock; nothing: the system is asked.
  absl::optional<uint64_t> locked_bytes;
};

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_VERBS_OPTIONS_H_
