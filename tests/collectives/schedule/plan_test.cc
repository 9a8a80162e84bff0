#include "collectives/schedule/plan.h"

#include <cstdint>
#include <limits>
#include <string>

#include "collectives/schedule/blocks.h"
#include "collectives/schedule/schedule.h"
#include "gtest/gtest.h"

namespace penstock::collectives {
namespace {

std::string ErrorOf(const Plan& plan) {
  return std::string(CheckPlan(plan).message());
}

TEST(Plan, OfOneRankIsRight) {
  Plan plan;
  EXPECT_EQ(ErrorOf(plan), "");
  EXPECT_TRUE(MakeSchedule(plan, 0).empty());
}

TEST(Plan, NamesTheFieldThatIsWrong) {
  Plan plan;
  plan.ranks = 0;
  EXPECT_EQ(ErrorOf(plan), "the number of ranks is 0, expected 1 to 65536");
  plan.ranks = kMaxRanks + 1;
  EXPECT_EQ(ErrorOf(plan), "the number of ranks is 65537, expected 1 to 65536");
  plan.ranks = 4;
  plan.root = 4;
  EXPECT_EQ(ErrorOf(plan), "root is 4, expected 0 to 3");
  plan.root = -1;
  EXPECT_EQ(ErrorOf(plan), "root is -1, expected 0 to 3");
  plan.root = 0;
  plan.count = -1;
  EXPECT_EQ(ErrorOf(plan), "count is -1, expected 0 or more");
  plan.count = 6;
  plan.segments = 0;
  EXPECT_EQ(ErrorOf(plan), "segments is 0, expected 1 to 65536");
  plan.segments = kMaxSegments + 1;
  EXPECT_EQ(ErrorOf(plan), "segments is 65537, expected 1 to 65536");
  plan.segments = 1;
  plan.algorithm = Algorithm::kHierarchical;
  EXPECT_EQ(ErrorOf(plan),
            "the number of hosts is 0, expected one for each rank");
  plan.hosts = {0, 0, 1, 1};
  plan.between_hosts = Algorithm::kHierarchical;
  EXPECT_EQ(ErrorOf(plan), "hierarchical cannot run between hosts");
  plan.operation = Operation::kAllToAll;
  EXPECT_EQ(ErrorOf(plan), "all_to_all has no algorithm hierarchical");
  plan.algorithm = Algorithm::kPairwise;
  EXPECT_EQ(ErrorOf(plan), "count is 6, expected a multiple of 4");
}

TEST(Blocks, OfTheLargestCountDoNotOverflow) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  const Range last = BlockOf(kMaxRanks - 1, kMaxRanks, kMost);
  EXPECT_EQ(last.begin + last.count, kMost);
  EXPECT_EQ(last.count, kMost / kMaxRanks);
  EXPECT_EQ(BlockOf(0, kMaxRanks, kMost).count, kMost / kMaxRanks + 1);
}

TEST(Schedule, TellsHowMuchMemoryARankNeeds) {
  Plan plan;
  plan.operation = Operation::kScatter;
  plan.algorithm = Algorithm::kBinomialTree;
  plan.ranks = 4;
  plan.count = 40;
  EXPECT_EQ(ExtentOf(MakeSchedule(plan, 1)), 20);
  EXPECT_EQ(ExtentOf(MakeSchedule(plan, 2)), 40);
}

}  // namespace
}  // namespace penstock::collectives
