// What users may choose about a channel or a server. Re-exported by penstock.h.

#ifndef PENSTOCK_TRANSPORT_OPTIONS_H_
#define PENSTOCK_TRANSPORT_OPTIONS_H_

#include <string>
#include <vector>

#include "absl/types/optional.h"

namespace penstock {

// What can carry a session, best first.
enum class Fabric {
  kShm,  // shared memory, for two processes on one host
  kTcp,  // Penstock's frames on the TCP (or TLS) connection itself
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

// Settings of one channel or one server. A field that is left empty comes from
// the environment, or else from its default; docs/settings.md has the table.
struct Options {
  absl::optional<Policy> policy;                // PENSTOCK_POLICY, prefer
  absl::optional<std::vector<Fabric>> fabrics;  // PENSTOCK_FABRICS, shm,tcp
  absl::optional<ShmSharing> shm_sharing;  // PENSTOCK_SHM_SHARING, same-uid
  // Where sockets for shared memory lie as files, for containers that share a
  // volume and no network; empty: nowhere. PENSTOCK_SHM_DIRECTORY, empty.
  absl::optional<std::string> shm_directory;
};

}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_OPTIONS_H_
