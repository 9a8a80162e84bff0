// Settings of a channel or a server. penstock.h includes this.

#ifndef PENSTOCK_OPTIONS_H_
#define PENSTOCK_OPTIONS_H_

#include <string>
#include <vector>

#include "absl/types/optional.h"

namespace penstock {

// The fabrics that can carry a session, best first.
enum class Fabric {
  kShm,    // shared memory, between two processes on one host
  kVerbs,  // RDMA, over InfiniBand or RoCE
  kTcp,    // Penstock's frames on the TCP (or TLS) connection itself
};

// The action if a connection can use none of the wanted fabrics.
enum class Policy {
  kRequire,  // refuse the connection, with the reason in its status
  kPrefer,   // use the next best, in the worst case stock HTTP/2
  kOff,      // use stock gRPC, and do not offer Penstock
};

// The way in which large messages are received through shared memory.
enum class ShmSharing {
  // Read a message in the sender's memory, without a copy, if the sender is a
  // process of the same user. The sender could change the message while it is
  // parsed. Messages of other users' processes are copied.
  kSameUid,
  kCopy,  // copy every message to private memory before delivering it
  kOff,   // use no shared memory
};

// The protection that a connection needs before it may use RDMA, if its
// security promises privacy, as TLS does. RDMA neither encrypts nor
// authenticates its data.
enum class DataProtection {
  kRequired,  // do not use RDMA for such a connection: TLS carries everything
  // No protection: allow RDMA. For networks that no one else can read. Lowers
  // the security level that gRPC reports to NONE, so that gRPC does not send
  // credentials that need privacy.
  kNone,
};

// Settings of one channel or one server. For an empty field, the environment
// applies, and then the default. See docs/settings.md for the defaults.
struct Options {
  // PENSTOCK_POLICY: the action if none of `fabrics` can be used.
  absl::optional<Policy> policy;
  // PENSTOCK_FABRICS: the fabrics that may carry a session, best first, each
  // once.
  absl::optional<std::vector<Fabric>> fabrics;
  // PENSTOCK_SHM_SHARING: the way in which large messages are received through
  // shared memory.
  absl::optional<ShmSharing> shm_sharing;
  // PENSTOCK_SHM_DIRECTORY: the absolute path of a directory for the sockets
  // that set up shared memory, for containers that share a volume but no
  // network. Empty: use no files, but abstract sockets.
  absl::optional<std::string> shm_directory;
  // PENSTOCK_VERBS_DEVICE: the RDMA device, or one port of it, such as "mlx5_0"
  // or "mlx5_0/1". Empty: any.
  absl::optional<std::string> verbs_device;
  // PENSTOCK_VERBS_GID_INDEX: the index of the port's GID, 0 to 255. -1: any.
  absl::optional<int> verbs_gid_index;
  // PENSTOCK_VERBS_TRAFFIC_CLASS: the DSCP and ECN bits, 0 to 255. Selects the
  // service level on InfiniBand. -1: the system's default.
  absl::optional<int> verbs_traffic_class;
  // PENSTOCK_EAGER_MAX: the largest message, in bytes, that is sent eagerly, 1
  // to 130816. Larger messages are announced, and the receiver reads them. 0:
  // Penstock measures each connection, and chooses the limit itself.
  absl::optional<int> eager_max_bytes;
  // PENSTOCK_CHUNK: the size of a piece, in bytes, 4096 to 1048576. A receiver
  // reads an announced message in such pieces. 0: Penstock measures each
  // connection, and chooses the size itself.
  absl::optional<int> chunk_bytes;
  // PENSTOCK_VERBS_CACHE_MIB: limits, in MiB, the memory that stays registered
  // with an RDMA device between messages. Only memory declared with
  // RegisterMemory() stays registered. 0: no memory stays registered.
  absl::optional<int> verbs_cache_mib;
  // PENSTOCK_DATA_PROTECTION: allows RDMA for connections that TLS protects.
  absl::optional<DataProtection> data_protection;
  // PENSTOCK_HEARTBEAT_MS: the longest silence on the TCP connection, in
  // milliseconds, while shared memory or RDMA carries its calls, 10 to 3600000.
  // Load balancers, proxies and NATs drop a connection that is silent for too
  // long. 0: no limit.
  absl::optional<int> heartbeat_ms;
};

}  // namespace penstock

#endif  // PENSTOCK_OPTIONS_H_
