// Which arena serves whom: one for each user that peers run as.

#ifndef PENSTOCK_TRANSPORT_FABRIC_SHM_DOMAINS_H_
#define PENSTOCK_TRANSPORT_FABRIC_SHM_DOMAINS_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "transport/fabric/shm/arena.h"

namespace penstock {
namespace fabric {
namespace shm {

// Of other users at a time; their arenas are kept for good.
constexpr size_t kMaxOtherDomains = 4;

// The arena for peers of user `uid`, made on first use and never destroyed:
// memory that one user's peers could read is not given to another's. In a
// forked child all are new. Thread-safe.
//
// This process's own user has Arena::DefaultBudget(). Another has a quarter of
// it, for it may keep what it was lent and so deny it to all others of its
// domain. `huge_pages` is the first call's. RESOURCE_EXHAUSTED for one user too
// many.
absl::StatusOr<std::shared_ptr<Arena>> ArenaFor(
    uid_t uid, HugePages huge_pages = HugePages::kTransparent);

}  // namespace shm
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_SHM_DOMAINS_H_
