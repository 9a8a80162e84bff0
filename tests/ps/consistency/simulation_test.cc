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

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "gtest/gtest.h"

namespace penstock::ps {
namespace {

uint64_t first_seed = 1;
uint64_t seeds = 3000;

TEST(ConsistencySimulation, AgreesWithTheModelAndGoesOn) {
  std::map<std::string, uint64_t> counts;
  for (uint64_t seed = first_seed; seed < first_seed + seeds; ++seed) {
    Simulation simulation(seed);
    const std::string error = simulation.Run();
    ASSERT_EQ(error, "") << "repeat with --seeds=1 --first=" << seed;
    for (const auto& entry : simulation.counts()) {
      counts[entry.first] += entry.second;
    }
  }
  std::printf("seeds %llu to %llu\n",
              static_cast<unsigned long long>(first_seed),
              static_cast<unsigned long long>(first_seed + seeds - 1));
  for (const auto& entry : counts) {
    std::printf("%9llu %s\n", static_cast<unsigned long long>(entry.second),
                entry.first.c_str());
  }
  if (seeds < 3000) return;
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
  testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    absl::string_view flag = argv[i];
    const bool is_known = (absl::ConsumePrefix(&flag, "--seeds=") &&
                           absl::SimpleAtoi(flag, &penstock::ps::seeds)) ||
                          (absl::ConsumePrefix(&flag, "--first=") &&
                           absl::SimpleAtoi(flag, &penstock::ps::first_seed));
    if (!is_known) {
      std::fprintf(stderr, "simulation_test [--seeds=N] [--first=S]\n");
      return 2;
    }
  }
  return RUN_ALL_TESTS();
}
