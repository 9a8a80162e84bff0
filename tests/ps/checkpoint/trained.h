// Makes the worlds that trainer_main.cc writes.

#ifndef PENSTOCK_TESTS_PS_CHECKPOINT_TRAINED_H_
#define PENSTOCK_TESTS_PS_CHECKPOINT_TRAINED_H_

#include <cstdint>

#include "tests/ps/checkpoint/world.h"

namespace penstock::ps::checkpoint {

constexpr uint64_t kTrainedSteps = 4;

// Returns the world after `step` steps. Each odd step is a base for the next
// steps. Only changes since the last odd step before `step` are marked.
inline World Trained(uint64_t step) {
  World world(/*seed=*/5, /*large_rows=*/8'000);
  for (uint64_t i = 1; i < step; ++i) {
    if (i % 2 == 1) world.Clean();
    world.Change();
  }
  return world;
}

}  // namespace penstock::ps::checkpoint

#endif  // PENSTOCK_TESTS_PS_CHECKPOINT_TRAINED_H_
