// Decides when an entry of the log may be fed.

#ifndef PENSTOCK_PS_SHARDS_FEED_ORDER_H_
#define PENSTOCK_PS_SHARDS_FEED_ORDER_H_

#include "absl/types/optional.h"
#include "ps/consistency/coordinator.h"
#include "ps/consistency/policy.h"

namespace penstock::ps {

// Returns true if the next entry, with its push if it has one, may be fed. All
// replicas then give the same verdict, and apply pushes in the same order,
// although they apply at different speeds and only the primary takes snapshots
// for joiners. False, until the server applies more or a snapshot ends, if
//
//   a step of synchronous tables is complete and not applied: later events
//   would be judged by the version before that step
//
//   the push would overtake another one, which waits behind the cut of a
//   snapshot. Only a worker that has fallen behind pushes so late, and the
//   snapshot does not wait for the push
bool MayFeed(const Coordinator& server, const absl::optional<PushId>& push);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SHARDS_FEED_ORDER_H_
