// Converts the state in a snapshot from and to a message.

#ifndef PENSTOCK_PS_SHARDS_STATE_WIRE_H_
#define PENSTOCK_PS_SHARDS_STATE_WIRE_H_

#include "absl/status/statusor.h"
#include "ps/replication/messages.h"
#include "ps/shards/wire.h"
#include "ps/wire/replicate.pb.h"
#include "ps/wire/run.pb.h"

namespace penstock::ps {

v1::WorkerId ToMessage(const WorkerId& worker);
inline WorkerId FromMessage(const v1::WorkerId& message) {
  return {message.rank(), message.incarnation()};
}

v1::WorkerClock ToMessage(const RankClock& clock);
inline RankClock FromMessage(const v1::WorkerClock& message) {
  return {FromMessage(message.worker()), message.clock()};
}

v1::SnapshotRestore ToMessage(const SnapshotState& state);
// Converts an untrusted message of a primary of `group`. Returns
// INVALID_ARGUMENT if a field is out of bounds.
absl::StatusOr<SnapshotState> StateIn(const v1::SnapshotRestore& message,
                                      const replication::Group& group);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SHARDS_STATE_WIRE_H_
