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

// The way in which peers access payloads.
enum class Windows {
  kWhereTrusted,  // by memory windows, if the device has them and respects them
  kNever,         // by copies in a pool that the peer can read
};

struct Options {
  // Limit the choice among the machine's RDMA addresses. Empty, 0 and -1 allow
  // any.
  std::vector<std::string> addresses;  // "10.9.0.1"
  std::string device;                  // "mlx5_0"
  int port = 0;
  int gid_index = -1;
  // The port at which this side listens, in the port space RDMA_PS_TCP. 0: any.
  uint16_t listen_port = 0;
  // The traffic class (DSCP and ECN bits) of RoCE v2. On InfiniBand, selects
  // the service level. With -1, the system chooses.
  int traffic_class = -1;

  // The exponent of the retransmission timeout. The device retransmits a lost
  // packet after 4.096 us * 2^ack_timeout, up to retry_count times. With these
  // values, it retransmits after 134 ms, and for a second in total. retry_count
  // is never 7, which some devices treat as "for ever".
  uint8_t ack_timeout = 15;
  uint8_t retry_count = 6;
  // Limits the time for which a connection may have requests in flight without
  // a completion. After this time the connection is lost, because the device or
  // its link hangs. Longer than the device's own retries, which take a second.
  absl::Duration completion_timeout = absl::Seconds(3);
  // Limits the time of each Connect() and Listen(), and the time until an
  // accepted connection is established.
  absl::Duration setup_timeout = absl::Seconds(5);
  // Limits the accepted connections that are not established yet.
  size_t max_half_open = 64;

  Windows windows = Windows::kWhereTrusted;
  // Limit the pool memory of one connection: for copies of payloads that the
  // peer reads, and for payloads that are read from the peer. Pools are
  // registered as needed, and kept. A payload that does not fit is registered
  // by itself while it is needed. Without windows, a payload that does not fit
  // is sent over tcp instead.
  uint64_t exposed_bytes = 32 * 1024 * 1024;
  uint64_t read_bytes = 32 * 1024 * 1024;
  // Limits the bytes of the program's declared stable memory that stay
  // registered, with windows. The limit is lower if the process may lock only
  // little memory.
  uint64_t cache_bytes = uint64_t{1} << 30;
  // Limits the bytes of GPU memory that stay registered while unused, in one
  // protection domain.
  uint64_t gpu_cache_bytes = uint64_t{1} << 30;
  // The smallest memory of a GPU that is registered for one message, in bytes.
  // For less memory, a copy to the host is cheaper. An estimate, never
  // measured: the system calls that export, register and deregister take about
  // 200 us.
  uint64_t gpu_alone_bytes = 2 * 1024 * 1024;
  // The time for which the heap block of a received message stays registered
  // for the next message. Not shorter than the time for which shm keeps an
  // empty segment.
  absl::Duration spare_idle = absl::Seconds(5);
  // The bytes that the process may lock. If not set, asks the system.
  absl::optional<uint64_t> locked_bytes;
};

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_VERBS_OPTIONS_H_
