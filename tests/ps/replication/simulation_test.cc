// Checks that, whatever fails:
// - no acknowledged push is lost or applied twice;
// - all replicas are equal bit by bit;
// - one primary acknowledges at a time, and pulls see all acknowledged pushes;
// - no log grows above its limit;
// - the answers to workers are linearizable;
// - the shard continues once there are no more faults.
//
// simulation_test [--seeds=N] [--first=S] runs more seeds, or repeats one.

#include "tests/ps/replication/simulation.h"

#include <cstdint>
#include <string>

#include "gtest/gtest.h"
#include "tests/ps/seeds.h"

namespace penstock::ps::replication {
namespace {

// Enough seeds for each event but a full log to have happened.
constexpr uint64_t kManySeeds = 200;
// Enough seeds for a full log, which one seed of some hundred has.
constexpr uint64_t kVeryManySeeds = 5000;

TEST(ReplicationSimulation, ForgetsAndRepeatsNothing) {
  EventCounts counts = SimulateEachSeed<Simulation>();
  if (ChosenSeeds().ran() < kManySeeds) return;
  for (const char* event :
       {"history judged", "primary crashed", "backup crashed",
        "primary deposed", "new primary", "snapshot taken", "push repeated",
        "worker superseded", "complaint", "message refused: OUT_OF_RANGE",
        "message refused: FAILED_PRECONDITION",
        "message refused: UNAVAILABLE"}) {
    EXPECT_GT(counts[event], 0u) << event;
  }
  if (ChosenSeeds().ran() < kVeryManySeeds) return;
  EXPECT_GT(counts["push refused: the log is full"], 0u);
}

}  // namespace
}  // namespace penstock::ps::replication

int main(int argc, char** argv) {
  return penstock::ps::RunWithSeeds(argc, argv, 1000000);
}
