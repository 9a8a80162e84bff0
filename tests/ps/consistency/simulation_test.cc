// Whatever workers do: no read is staler than allowed, nothing waits that need
// not, each push that is acknowledged counts once or is said not to, the run
// goes on while a worker works, and nothing grows without bound.
//
// simulation_test [--seeds=N] [--first=S] runs more, or one again.

#include "tests/ps/consistency/simulation.h"

#include <cstdint>
#include <cstdio>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/ps/seeds.h"

namespace penstock::ps {
namespace {

constexpr uint64_t kSeeds = 3000;

TEST(ConsistencySimulation, AgreesWithTheModelAndGoesOn) {
  Seeds& seeds = ChosenSeeds();
  std::map<std::string, uint64_t> counts;
  for (uint64_t seed = seeds.first(); seeds.Wants(seed); ++seed) {
    Simulation simulation(seed);
    const std::string error = simulation.Run();
    ASSERT_EQ(error, "") << RepeatWith(seed);
    for (const auto& entry : simulation.counts()) {
      counts[entry.first] += entry.second;
    }
  }
  seeds.Print();
  for (const auto& entry : counts) {
    std::printf("%9llu %s\n", static_cast<unsigned long long>(entry.second),
                entry.first.c_str());
  }
  if (seeds.ran() < kSeeds) return;
  // Seeds that never come to a rule would not hold it.
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
