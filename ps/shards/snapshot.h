// Writes the values of a server as a checkpoint's shard file in memory, and
// restores them.

#ifndef PENSTOCK_PS_SHARDS_SNAPSHOT_H_
#define PENSTOCK_PS_SHARDS_SNAPSHOT_H_

#include <deque>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ps/server/cancellation.h"
#include "ps/server/server.h"
#include "ps/shards/wire.h"
#include "tensor_service/tensor.h"

namespace penstock::ps {

// A function that receives the next bytes of a file. May block. The bytes are
// valid only during the call.
using ByteSink = std::function<absl::Status(absl::string_view bytes)>;

// Writes the values of `snapshot`, a snapshot of `server`, to `sink`. Sets the
// bytes and the checksum of `state`. Blocks. Returns the error of the sink.
absl::Status WriteValues(const Server::Training& training,
                         ModelSnapshot snapshot,
                         const Cancellation* cancellation, const ByteSink& sink,
                         SnapshotState* state);

// Defines `server` with the values of a shard file, whose pieces are given.
// `server` must have no training. Blocks. Returns DATA_LOSS if the file is
// damaged.
absl::Status RestoreValues(const std::deque<tensor::Tensor>& pieces,
                           const SnapshotState& state, Server* server);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SHARDS_SNAPSHOT_H_
