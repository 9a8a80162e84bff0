// What users may choose about a channel or a server. Users include
// transport/penstock.h or transport/options.h, which re-export it.

#ifndef PENSTOCK_TRANSPORT_SETTINGS_OPTIONS_H_
#define PENSTOCK_TRANSPORT_SETTINGS_OPTIONS_H_

#include <string>
#include <vector>

#include "absl/types/optional.h"

namespace penstock {

// What can carry a session, best first.
enum class Fabric {
  kShm,    // shared memory, for two processes on one host
  kVerbs,  // RDMA, over InfiniBand or RoCE
  kTcp,    // Penstock's frames on the TCP (or TLS) connection itself
};

// What happens where none of the wanted fabrics can be had.
enum class Policy {
  kRequire,  // the connection is refused, with the reason in its status
  kPrefer,   // the next best carries it, at the worst stock HTTP/2
  kOff,      // stock gRPC: Penstock is not even offered
};

// How large messages go through shared memory.
enum class ShmSharing {
  // Read where the sender has put them, without a copy, if it is a process of
  // the same user, which could change one while it is parsed. Those of another
  // user's are copied.
  kSameUid,
  kCopy,  // copied to private memory before the application sees them
  kOff,   // no shared memory at all
};

// What a connection may use whose security promises privacy (TLS does), since
// RDMA neither encrypts nor authenticates what it carries.
enum class DataProtection {
  kRequired,  // no RDMA: TLS carries everything
  // RDMA may carry it, as on a network that nobody else reaches. The security
  // level that gRPC knows of is lowered to NONE, so that credentials which
  // must not be sent in the clear are not sent.
  kNone,
};

// Settings of one channel or one server. A field that is left empty comes from
// the environment, or else from its default; docs/settings.md has the table.
struct Options {
  // PENSTOCK_POLICY: what happens where none of `fabrics` can be had.
  absl::optional<Policy> policy;
  // PENSTOCK_FABRICS: those that may carry a session, best first, each once.
  absl::optional<std::vector<Fabric>> fabrics;
  // PENSTOCK_SHM_SHARING.
  absl::optional<ShmSharing> shm_sharing;
  // PENSTOCK_SHM_DIRECTORY: where sockets for shared memory lie as files, for
  // containers that share a volume and no network; empty: nowhere.
  absl::optional<std::string> shm_directory;
  // PENSTOCK_VERBS_DEVICE: which RDMA device, or which port of it: "mlx5_0",
  // "mlx5_0/1"; empty: any.
  absl::optional<std::string> verbs_device;
  // PENSTOCK_VERBS_GID_INDEX: which of a port's GIDs; -1: any.
  absl::optional<int> verbs_gid_index;
  // PENSTOCK_VERBS_TRAFFIC_CLASS: 0 to 255, DSCP and ECN bits; on InfiniBand it
  // selects the service level; -1: the system's.
  absl::optional<int> verbs_traffic_class;
  // PENSTOCK_EAGER_MAX: up to how many bytes a message is sent eagerly, above
  // which it is announced and read: 1 to 16352; 0: as measured.
  absl::optional<int> eager_max_bytes;
  // PENSTOCK_CHUNK: bytes of a piece in which announced messages are read, 4096
  // to 1048576; 0: as measured.
  absl::optional<int> chunk_bytes;
  // PENSTOCK_VERBS_CACHE_MIB: of memory that was named to RegisterMemory(), how
  // many MiB stay registered with an RDMA device while nothing of it is sent;
  // 0: none.
  absl::optional<int> verbs_cache_mib;
  // PENSTOCK_DATA_PROTECTION: whether RDMA may carry what TLS protects.
  absl::optional<DataProtection> data_protection;
};

}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_SETTINGS_OPTIONS_H_
