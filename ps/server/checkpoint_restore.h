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

// Puts what `tables` are to hold of the checkpoint of `step`, or of the newest
// good one if that is 0, into them, whatever the number of servers that wrote
// it. Then every part has its value. Needs the memory of the values and one
// block of a file more.
//
// To find the newest good one, all of its bytes are read first: a damaged one
// is passed over, which `log` is told. Server 0 does that, and the others are
// told its step.
//
// A part that is put together of rows with different steps, or a pack of
// tables with different ones, goes on from the highest of them.
//
// Returns NOT_FOUND if the step is 0 and there is no checkpoint;
// FAILED_PRECONDITION if there is none of the step, it is of a newer format, or
// of another model, with the first table that differs, and how; DATA_LOSS if it
// is damaged; RESOURCE_EXHAUSTED if there is no room for it.
absl::StatusOr<RestoredModel> RestoreCheckpoint(
    checkpoint::Files* files, uint64_t step, Tables* tables,
    const std::function<void(const std::string&)>& log);

// Returns RestoreCheckpoint() for Server::Options::restore. `wanted` is the
// step that the operator has chosen, if any: a chief that wants another is
// refused. `files` outlive the server.
std::function<absl::StatusOr<RestoredModel>(uint64_t step, Tables* tables)>
RestoreFrom(checkpoint::Files* files,
            absl::optional<uint64_t> wanted = absl::nullopt);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SERVER_CHECKPOINT_RESTORE_H_
