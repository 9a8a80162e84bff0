// Finds the checkpoints that servers take periodically.

#ifndef PENSTOCK_TESTS_PS_FAILOVER_CHECKPOINTS_H_
#define PENSTOCK_TESTS_PS_FAILOVER_CHECKPOINTS_H_

#include <cstdint>
#include <string>

namespace penstock::ps {

// Returns the step of the newest checkpoint in a folder, or 0 if there is none.
uint64_t NewestIn(const std::string& folder);
// Waits for a checkpoint that is newer than `step`. Fails after 30 seconds.
void AwaitCheckpointAfter(const std::string& folder, uint64_t step);

}  // namespace penstock::ps

#endif  // PENSTOCK_TESTS_PS_FAILOVER_CHECKPOINTS_H_
