// Makes the servers of a training write a checkpoint.

#ifndef PENSTOCK_PS_CLIENT_CHECKPOINT_H_
#define PENSTOCK_PS_CLIENT_CHECKPOINT_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "ps/client/training_connection.h"
#include "ps/wire/ps.pb.h"

namespace penstock::ps {

struct CheckpointOptions {
  // True to write only the changes since the newest checkpoint, if that
  // checkpoint can be the base.
  bool incremental = false;
  // The number of checkpoints to keep, the newest ones. 0 keeps all.
  uint64_t keep = 0;
  absl::Duration timeout = absl::Minutes(10);  // of the whole checkpoint
  // True to let server 0 log and report an error. False if the caller does.
  bool tells_server = true;
  // Receives a line of text for people at each stage. May be empty.
  std::function<void(absl::string_view)> progress;
  // Receives the bytes that all servers have written, and the expected total,
  // repeatedly while the servers write, on another thread. The total may
  // shrink; see ps.proto. If empty, no server is asked.
  std::function<void(uint64_t done, uint64_t total)> written;
  // Called about every 100 ms, on any thread. Once it has returned true, it
  // must keep returning true. TakeCheckpoint() then ends its turn, and
  // returns CANCELLED. A commit in progress still completes. May be empty.
  std::function<bool()> interrupted;
};

struct CheckpointResult {
  uint64_t step = 0;  // names the checkpoint
  bool is_incremental = false;
  // True if another caller has written this checkpoint, with its own options.
  bool is_joined = false;
  uint64_t bytes = 0;  // of all servers
  std::vector<uint64_t> removed_steps;
  // The number of all checkpoints in the folder; 0 if `is_joined`.
  uint64_t checkpoints = 0;
  uint64_t checkpoints_bytes = 0;
};

// Writes a checkpoint at all servers concurrently. Each push is wholly in the
// checkpoint or wholly outside, at all tables and servers. All servers hold
// their steps while the cut is chosen, and then continue to the cut. Blocks;
// training continues meanwhile. If a server ends its hold before it learns the
// cut, retries, with up to five attempts in total. If a server cannot use the
// base, retries with a full checkpoint.
//
// Any process and thread may call this function at any time. If another caller
// is writing a checkpoint, waits for the end of it. Returns that checkpoint if
// it has all pushes that had counted before this call; otherwise writes the
// next one. A caller that is silent for 30 seconds loses its turn: its call
// returns ABORTED.
//
// Returns OUT_OF_RANGE if a server was past the cut in each attempt,
// DEADLINE_EXCEEDED after the timeout, CANCELLED if interrupted, and the
// servers' errors. An error leaves no checkpoint. Server 0 logs and reports the
// reason, unless interrupted; see CheckpointOptions::tells_server. The next
// attempt removes leftover files.
absl::StatusOr<CheckpointResult> TakeCheckpoint(
    const TrainingConnection& connection, const CheckpointOptions& options);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_CLIENT_CHECKPOINT_H_
