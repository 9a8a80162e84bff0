// Checks that, for any behavior of the workers:
// - no read exceeds the allowed staleness;
// - no call waits unnecessarily;
// - each acknowledged push counts once, or its verdict says otherwise;
// - the run continues while a worker works;
// - no memory grows without bound.
//
// simulation_test [--seeds=N] [--first=S] runs more seeds, or repeats one.

#include "tests/ps/consistency/simulation.h"

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/ps/seeds.h"

namespace penstock::ps {
namespace {

constexpr uint64_t kSeeds = 3000;

TEST(ConsistencySimulation, AgreesWithTheModelAndGoesOn) {
  EventCounts counts = SimulateEachSeed<Simulation>();
  if (ChosenSeeds().ran() < kSeeds) return;
  // Expects that the seeds have reached each verdict. Otherwise the test would
  // not cover that verdict.
  using Verdict = Coordinator::Verdict;
  for (Verdict verdict :
       {Verdict::kAccepted, Verdict::kDuplicate, Verdict::kLate,
        Verdict::kAhead, Verdict::kNotMember, Verdict::kSuperseded,
        Verdict::kReplaced, Verdict::kTimedOut, Verdict::kInvalid}) {
    EXPECT_GT(counts[absl::StrCat("push: ", Describe(verdict))], 0u)
        << Describe(verdict);
  }
  for (Verdict verdict :
       {Verdict::kAccepted, Verdict::kNotMember, Verdict::kSuperseded,
        Verdict::kTimedOut, Verdict::kTooMany, Verdict::kInvalid}) {
    EXPECT_GT(counts[absl::StrCat("pull: ", Describe(verdict))], 0u)
        << Describe(verdict);
  }
}

}  // namespace
}  // namespace penstock::ps

int main(int argc, char** argv) {
  return penstock::ps::RunWithSeeds(argc, argv, penstock::ps::kSeeds);
}
