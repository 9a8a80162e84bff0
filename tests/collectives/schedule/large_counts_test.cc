// Tests that no count, range or number of bytes is truncated to 32 bits.
//
// A schedule for a multiple of a small count must have the multiples of the
// small schedule's ranges. schedule_test.cc simulates the small schedules.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "collectives/schedule/blocks.h"
#include "collectives/schedule/choice.h"
#include "collectives/schedule/cost.h"
#include "collectives/schedule/plan.h"
#include "collectives/schedule/schedule.h"
#include "gtest/gtest.h"

namespace penstock::collectives {
namespace {

constexpr Operation kOperations[] = {
    Operation::kAllReduce, Operation::kReduceScatter, Operation::kAllGather,
    Operation::kBroadcast, Operation::kReduce,        Operation::kGather,
    Operation::kScatter,   Operation::kAllToAll};
constexpr int kSegments = 3;

// Returns a plan whose blocks and segments have equal sizes.
Plan PlanOf(Operation operation, Algorithm algorithm, int ranks,
            int64_t factor) {
  Plan plan;
  plan.operation = operation;
  plan.algorithm = algorithm;
  plan.ranks = ranks;
  plan.root = ranks - 1;
  plan.segments = kSegments;
  for (int rank = 0; rank < ranks; ++rank) plan.hosts.push_back(rank / 2);
  // A multiple of the numbers of ranks, hosts and segments.
  plan.count = factor * ranks * ((ranks + 1) / 2) * kSegments;
  return plan;
}

void ExpectMultiple(const Plan& small, const Plan& large, int64_t factor) {
  for (int rank = 0; rank < small.ranks; ++rank) {
    const Schedule few = MakeSchedule(small, rank);
    const Schedule many = MakeSchedule(large, rank);
    ASSERT_EQ(many.size(), few.size());
    EXPECT_EQ(ExtentOf(many), factor * ExtentOf(few));
    for (size_t i = 0; i < few.size(); ++i) {
      ASSERT_EQ(many[i].range.begin, factor * few[i].range.begin);
      ASSERT_EQ(many[i].range.count, factor * few[i].range.count);
    }
  }
  EXPECT_EQ(CostOf(large).total,
            static_cast<double>(factor) * CostOf(small).total);
}

TEST(LargeCounts, AreMultiplesOfSmallOnes) {
  // Counts above 2^31, above 2^32, and at the limit of a buffer, 2^47.
  for (const int shift : {29, 30, 31, 32, 33, 40}) {
    const int64_t factor = int64_t{1} << shift;
    for (const Operation operation : kOperations) {
      for (const Algorithm algorithm : AlgorithmsOf(operation)) {
        for (const int ranks : {1, 2, 3, 6, 8, 13}) {
          SCOPED_TRACE(absl::StrCat(Name(operation), " by ", Name(algorithm),
                                    ", ", ranks, " ranks, 2^", shift));
          const Plan large = PlanOf(operation, algorithm, ranks, factor);
          ASSERT_TRUE(CheckPlan(large).ok()) << CheckPlan(large);
          ExpectMultiple(PlanOf(operation, algorithm, ranks, 1), large, factor);
        }
      }
    }
  }
}

TEST(LargeCounts, ThatAreOddAreCoveredByTheirBlocks) {
  for (const int64_t count : {(int64_t{1} << 31) - 1, (int64_t{1} << 31) + 1,
                              (int64_t{1} << 32) + 7, (int64_t{1} << 47) - 3}) {
    int64_t end = 0;
    for (int block = 0; block < 7; ++block) {
      const Range range = BlockOf(block, 7, count);
      EXPECT_EQ(range.begin, end);
      EXPECT_EQ(range.count, count / 7 + (block < count % 7 ? 1 : 0));
      end = range.begin + range.count;
    }
    EXPECT_EQ(end, count);
  }
}

TEST(LargeCounts, AreChosenForAndDescribed) {
  Question question;
  question.operation = Operation::kAllReduce;
  question.count = (int64_t{1} << 33) + 1;
  question.element_size = 8;
  question.hosts = {0, 1, 2, 3};
  const auto choice = Choose(question, {});
  ASSERT_TRUE(choice.ok()) << choice.status();
  EXPECT_EQ(choice->chosen.plan.count, question.count);
  // Checks the time in microseconds: each rank sends and receives at least the
  // whole buffer.
  EXPECT_GT(choice->chosen.microseconds,
            8.0 * static_cast<double>(question.count) *
                question.between_hosts.byte_us);
  EXPECT_EQ(Describe(*choice).substr(0, 24), "all_reduce of 8589934593");
}

}  // namespace
}  // namespace penstock::collectives
