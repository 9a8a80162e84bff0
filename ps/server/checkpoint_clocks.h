// Compares the clocks of workers in checkpoints.

#ifndef PENSTOCK_PS_SERVER_CHECKPOINT_CLOCKS_H_
#define PENSTOCK_PS_SERVER_CHECKPOINT_CLOCKS_H_

#include <cstdint>
#include <vector>

#include "ps/checkpoint/records.h"
#include "ps/consistency/membership.h"

namespace penstock::ps {

using CheckpointClocks = std::vector<checkpoint::WorkerClock>;

CheckpointClocks ToRecords(const std::vector<RankClock>& clocks);
// Returns the highest clock; 0 without clocks.
uint64_t Highest(const CheckpointClocks& clocks);
// Returns true if a checkpoint with the clocks `cut` contains all pushes below
// `clocks`.
bool HasAll(const CheckpointClocks& cut, const CheckpointClocks& clocks);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SERVER_CHECKPOINT_CLOCKS_H_
