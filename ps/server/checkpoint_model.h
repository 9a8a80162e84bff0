// The description of a model in a checkpoint.

#ifndef PENSTOCK_PS_SERVER_CHECKPOINT_MODEL_H_
#define PENSTOCK_PS_SERVER_CHECKPOINT_MODEL_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "ps/checkpoint/model.h"
#include "ps/model/model.h"
#include "ps/placement/placement_map.h"

namespace penstock::ps {

// Returns the tables of a model in the form of a checkpoint, in the same order.
// Each table has the slots of its optimizer. Slots of dense tables are as in
// optim::DenseSlotsOf(); slots of sparse tables are f32. A checkpoint has no
// rates, staleness or limits, so that a training may continue with other ones.
// Returns INVALID_ARGUMENT, with the name of the table, if a table is too large
// for a checkpoint.
absl::StatusOr<checkpoint::Model> CheckpointModelOf(const Model& model);

// Returns a digest for each table of `model`, as in Manifest::placements.
// Placements of a table that differ have different digests, and the digest of a
// placement stays the same in later releases.
std::vector<uint64_t> DigestsOf(const PlacementMap& placement,
                                const Model& model);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SERVER_CHECKPOINT_MODEL_H_
