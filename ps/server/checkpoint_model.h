// A model as checkpoints describe it.

#ifndef PENSTOCK_PS_SERVER_CHECKPOINT_MODEL_H_
#define PENSTOCK_PS_SERVER_CHECKPOINT_MODEL_H_

#include "absl/status/statusor.h"
#include "ps/checkpoint/model.h"
#include "ps/model/model.h"

namespace penstock::ps {

// Returns the tables in the same order, each with the slots that its optimizer
// keeps: those of dense tables as optim::DenseSlotsOf() has them, those of
// sparse ones in f32. Rates, staleness and limits are in no checkpoint, so that
// a training may go on with others. Returns INVALID_ARGUMENT, which names the
// table, if it is too large for a checkpoint.
absl::StatusOr<checkpoint::Model> CheckpointModelOf(const Model& model);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SERVER_CHECKPOINT_MODEL_H_
