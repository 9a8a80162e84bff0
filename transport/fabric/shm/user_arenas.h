// The arenas of this process: one for each user that peers run as.

#ifndef PENSTOCK_TRANSPORT_FABRIC_SHM_USER_ARENAS_H_
#define PENSTOCK_TRANSPORT_FABRIC_SHM_USER_ARENAS_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "transport/fabric/shm/arena.h"

namespace penstock {
namespace fabric {
namespace shm {

// The most other users that have an arena. They keep it for good.
constexpr size_t kMaxOtherUsers = 4;

// Returns the arena for peers of user `uid`. Makes it on first use, with the
// `huge_pages` and `bytes` of that call, and never destroys it: memory that one
// user's peers could read is not given to another's. Makes all arenas anew in a
// forked child. Thread-safe.
//
// Gives this process's own user `bytes`, or Arena::DefaultBudget() if they are
// 0, and another one a quarter of it, since a peer may keep what it was lent
// and so deny it to the others. Returns RESOURCE_EXHAUSTED for one user too
// many.
absl::StatusOr<std::shared_ptr<Arena>> ArenaFor(
    uid_t uid, HugePages huge_pages = HugePages::kTransparent,
    uint64_t bytes = 0);

}  // namespace shm
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_SHM_USER_ARENAS_H_
