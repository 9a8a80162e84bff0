// Compares the clocks of workers in checkpoints.

#ifndef PENSTOCK_PS_SERVER_CHECKPOINT_CLOCKS_H_
#define PENSTOCK_PS_SERVER_CHECKPOINT_CLOCKS_H_

#include <cstdint>
#include <vector>

#include "ps/checkpoint/records.h"
#include "ps/consistency/membership.h"
#include "ps/server/exchange.h"

namespace penstock::ps {

using CheckpointClocks = std::vector<checkpoint::WorkerClock>;

CheckpointClocks ToRecords(const std::vector<RankClock>& clocks);
// Returns the highest clock after a push that `exchange` has applied or is
// applying. Each cut that is chosen later contains these pushes.
uint64_t BegunClock(const Exchange& exchange);
// Returns true if a checkpoint with the clocks `cut` contains all pushes below
// `clocks`.
bool HasAll(const CheckpointClocks& cut, const CheckpointClocks& clocks);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SERVER_CHECKPOINT_CLOCKS_H_
