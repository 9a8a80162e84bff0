// Servers begin with what a checkpoint has.

#ifndef PENSTOCK_PS_SERVER_CHECKPOINT_RESTORE_H_
#define PENSTOCK_PS_SERVER_CHECKPOINT_RESTORE_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "ps/checkpoint/files.h"
#include "ps/server/model_snapshot.h"
#include "ps/server/tables.h"

namespace penstock::ps {

struct RestoreOptions {
  // Leaves tables of the checkpoint out that the model does not have any more.
  bool may_drop_tables = false;
};

// Puts what `tables` are to hold of the checkpoint of `step`, or of the newest
// good one if that is 0, into them, whatever the number of servers that wrote
// it. Then every part has its value, but for new ones. Needs the memory of the
// values and one block of a file more.
//
// To find the newest good one, all of its bytes are read first: a damaged one
// is passed over, which `log` is told. Server 0 does that, and the others are
// told its step.
//
// Tables that the checkpoint does not have are new, which `log` is told and
// Tables::SetNew(): sparse ones are empty, and parts with dense ones have no
// value until a chief has given first values. One pack may have both: the new
// one then goes on from the pack's step, as if it had had no gradients.
//
// A part that is put together of rows with different steps, or a pack of
// tables with different ones, goes on from the highest of them.
//
// Returns NOT_FOUND if the step is 0 and there is no checkpoint;
// FAILED_PRECONDITION if there is none of the step, it is of a newer format,
// has a table that may not be dropped, or another one of its name: with the
// first table that differs, and how; DATA_LOSS if it is damaged;
// RESOURCE_EXHAUSTED if there is no room for it.
absl::StatusOr<RestoredModel> RestoreCheckpoint(
    checkpoint::Files* files, uint64_t step, const RestoreOptions& options,
    Tables* tables, const std::function<void(const std::string&)>& log);

// Returns RestoreCheckpoint() for Server::Options::restore. `wanted` is the
// step that the operator has chosen, if any: a chief that wants another is
// refused. `files` outlive the server.
std::function<absl::StatusOr<RestoredModel>(uint64_t step, Tables* tables)>
RestoreFrom(checkpoint::Files* files,
            absl::optional<uint64_t> wanted = absl::nullopt,
            const RestoreOptions& options = {});

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SERVER_CHECKPOINT_RESTORE_H_
