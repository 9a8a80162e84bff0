// Servers begin with what a checkpoint has.

#ifndef PENSTOCK_PS_SERVER_CHECKPOINT_RESTORE_H_
#define PENSTOCK_PS_SERVER_CHECKPOINT_RESTORE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "ps/checkpoint/files.h"
#include "ps/server/model_snapshot.h"
#include "ps/server/tables.h"
#include "ps/server/training.h"

namespace penstock::ps {

struct RestoreOptions {
  // Leaves tables of the checkpoint out that the model does not have any more.
  bool may_drop_tables = false;
  // For messages.
  std::string folder = "its folder";
  // Called with lines for people. If empty, they go to Penstock's log.
  std::function<void(const std::string&)> log;
};

// Puts what `tables` are to hold of `cut` into them, whatever the number of
// servers that wrote it. Then every part has its value, but for new ones. Needs
// the memory of the values and one block of a file more. Logs what was
// restored.
//
// Tables that the checkpoint does not have are new, which `log` is told and
// Tables::SetNew(): sparse ones are empty, and parts with dense ones have no
// value until a chief has given first values. One pack may have both: the new
// one then goes on from the pack's step, as if it had had no gradients.
//
// A part that is put together of rows with different steps, or a pack of
// tables with different ones, goes on from the highest of them.
//
// Returns FAILED_PRECONDITION if the folder does not have the cut, or it is of
// a newer format, has a table that may not be dropped, or another one of its
// name: with the first table that differs, and how; DATA_LOSS if it is damaged;
// RESOURCE_EXHAUSTED if there is no room for it.
absl::StatusOr<RestoredModel> RestoreCheckpoint(checkpoint::Files* files,
                                                const CutId& cut,
                                                const RestoreOptions& options,
                                                Tables* tables);

// Returns what servers restore from. `wanted` is the step that the operator has
// chosen, if any: another one is refused. Else it is the newest good one: to
// choose it, all of its bytes are read, and damaged ones are passed over.
// `files` outlive the server.
std::shared_ptr<RestoreSource> RestoreFrom(
    checkpoint::Files* files, absl::optional<uint64_t> wanted = absl::nullopt,
    const RestoreOptions& options = {});

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SERVER_CHECKPOINT_RESTORE_H_
