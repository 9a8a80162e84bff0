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

// Limits the number of other users that get an arena, because arenas are never
// freed.
constexpr size_t kMaxOtherUsers = 4;

// Returns the arena for peers of user `uid`. The first call for a user makes
// the arena, with the `huge_pages` and `bytes` of that call. An arena is never
// destroyed: memory that one user's peers could read is not reused for another
// user. A forked child makes arenas of its own. Thread-safe.
//
// The arena of this process's own user has `bytes`, or Arena::DefaultBudget()
// if `bytes` is 0. An arena for another user has a quarter of this, because a
// peer may keep lent memory, which other peers then lack. Returns
// RESOURCE_EXHAUSTED if there are too many users.
absl::StatusOr<std::shared_ptr<Arena>> ArenaFor(
    uid_t uid, HugePages huge_pages = HugePages::kTransparent,
    uint64_t bytes = 0);

}  // namespace shm
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_SHM_USER_ARENAS_H_
