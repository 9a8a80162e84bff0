// Restores servers from a checkpoint.

#ifndef PENSTOCK_PS_SERVER_CHECKPOINT_RESTORE_H_
#define PENSTOCK_PS_SERVER_CHECKPOINT_RESTORE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "ps/checkpoint/files.h"
#include "ps/server/model_snapshot.h"
#include "ps/server/tables.h"
#include "ps/server/training.h"

namespace penstock::ps {

struct RestoreOptions {
  // Allows tables of the checkpoint that the model lacks. These tables are
  // dropped.
  bool may_drop_tables = false;
  // Allows sparse tables to drop the least recently used rows that do not fit.
  bool may_drop_rows = false;
  // The folder's name in messages.
  std::string folder = "its folder";
  // Called with lines of text for people. If empty, the lines go to Penstock's
  // log.
  std::function<void(const std::string&)> log;
};

// Restores this server's share of `cut` into `tables`. The checkpoint may have
// been written by any number of servers. Afterwards every part has a value,
// except parts with new tables. Needs memory for the values, plus one block of
// a file. Logs the number of restored values.
//
// A table that the checkpoint lacks is new. Logs new tables, and calls
// Tables::SetNew() for them. New sparse tables are empty. A part with a new
// dense table has no value until the chief sets first values. If a pack has new
// and restored tables, the new ones continue from the pack's step.
//
// A part whose rows or tables had different steps continues from the highest
// step.
//
// If a shard has no room, drops its least recently used rows, if the options
// allow this. Tables that evict by their own limits need no option, if the rows
// do not fit only because a limit is divided among shards. Logs the number of
// dropped rows.
//
// Fails with:
//   FAILED_PRECONDITION  the folder lacks the cut; the format is newer; a table
//                        may not be dropped; or a table differs from the
//                        model's; or rows do not fit. Names the first such
//                        table.
//   DATA_LOSS            the checkpoint is damaged
//   RESOURCE_EXHAUSTED   dense values do not fit, or rows do not fit on disk
absl::StatusOr<RestoredModel> RestoreCheckpoint(checkpoint::Files* files,
                                                const CutId& cut,
                                                const RestoreOptions& options,
                                                Tables* tables);

// Returns a source of a server's first state. The source restores the step
// `wanted`, and refuses other steps. Without `wanted`, the source chooses the
// newest undamaged checkpoint. Choose() reads all bytes of a checkpoint only
// with `verifies`. `files` must outlive the server.
std::shared_ptr<RestoreSource> RestoreFrom(
    checkpoint::Files* files, absl::optional<uint64_t> wanted = absl::nullopt,
    const RestoreOptions& options = {});

// Returns OK if `files` have the checkpoint of `step`. Otherwise returns
// FAILED_PRECONDITION with the remedies, or DATA_LOSS if it is damaged.
// `folder` is the name of the folder for messages.
absl::Status CheckHasStep(checkpoint::Files* files, uint64_t step,
                          const std::string& folder);

// Returns OK if `files` have no checkpoint. Otherwise returns
// FAILED_PRECONDITION with two remedies, because a training may only write to a
// folder whose checkpoint it has restored. `folder` is the name of the folder
// for messages.
absl::Status CheckUnused(checkpoint::Files* files, const std::string& folder);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SERVER_CHECKPOINT_RESTORE_H_
