// Writes the values of a server as the file of a checkpoint's shard, and
// restores them, without a disk.

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

// Takes the next bytes of a file. May block. The bytes are valid during the
// call.
using ByteSink = std::function<absl::Status(absl::string_view bytes)>;

// Writes the values of `snapshot`, which `server` has taken, to `sink`. Sets
// the bytes and the checksum of `state`. Blocks. Returns the error of the sink.
absl::Status WriteValues(const Server::Training& training,
                         ModelSnapshot snapshot,
                         const Cancellation* cancellation, const ByteSink& sink,
                         SnapshotState* state);

// Defines `server`, which has no training, with the values of a file in pieces.
// Blocks. Returns DATA_LOSS if the file is damaged.
absl::Status RestoreValues(const std::deque<tensor::Tensor>& pieces,
                           const SnapshotState& state, Server* server);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SHARDS_SNAPSHOT_H_
