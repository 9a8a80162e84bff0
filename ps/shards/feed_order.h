// Decides when an entry of the log may be fed to the server.

#ifndef PENSTOCK_PS_SHARDS_FEED_ORDER_H_
#define PENSTOCK_PS_SHARDS_FEED_ORDER_H_

#include "absl/types/optional.h"
#include "ps/consistency/coordinator.h"
#include "ps/consistency/policy.h"

namespace penstock::ps {

// Returns true if the next entry may be fed; `push` is its push, if it has one.
// All replicas then judge the entry equally and apply pushes in the same order,
// although they apply at different speeds, and only the primary takes
// snapshots. Returns false in these cases:
//
//   - A step of synchronous tables is complete and not applied. Later events
//     would be judged by the version before that step.
//   - The push would overtake another push that waits behind the cut of a
//     snapshot. Only a worker that has fallen behind pushes so late, and the
//     snapshot does not wait for that push.
bool MayFeed(const Coordinator& server, const absl::optional<PushId>& push);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SHARDS_FEED_ORDER_H_
