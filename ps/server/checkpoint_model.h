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

// Returns the tables of a model as a checkpoint describes them, in the same
// order. Each table has the slots of its optimizer: as in optim::DenseSlotsOf()
// for dense tables, and f32 for sparse tables. A checkpoint stores no rates,
// staleness or limits, so a training may continue with others. Returns
// INVALID_ARGUMENT, with the name of the table, if a table is too large for a
// checkpoint.
absl::StatusOr<checkpoint::Model> CheckpointModelOf(const Model& model);

// Returns a digest of the placement of each table of `model`, as in
// Manifest::placements. Different placements of a table have different digests.
// The digest of a placement stays the same in later releases.
std::vector<uint64_t> DigestsOf(const PlacementMap& placement,
                                const Model& model);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SERVER_CHECKPOINT_MODEL_H_
