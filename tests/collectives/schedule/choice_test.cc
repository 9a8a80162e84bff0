#include "collectives/schedule/choice.h"

#include <limits>
#include <string>
#include <vector>

#include "collectives/schedule/plan.h"
#include "gtest/gtest.h"

namespace penstock::collectives {
namespace {

Question AllReduceOf(int64_t bytes, int ranks, int ranks_per_host) {
  Question question;
  question.count = bytes;
  question.hosts.clear();
  for (int rank = 0; rank < ranks; ++rank) {
    question.hosts.push_back(rank / ranks_per_host);
  }
  return question;
}

Plan Chosen(const Question& question, const Overrides& overrides = {}) {
  return Choose(question, overrides)->chosen.plan;
}

TEST(Choice, TakesTheFewestStepsForSmallBuffers) {
  EXPECT_EQ(Chosen(AllReduceOf(8, 16, 1)).algorithm,
            Algorithm::kRecursiveDoubling);
}

TEST(Choice, MovesTheFewestBytesForLargeBuffers) {
  const Plan plan = Chosen(AllReduceOf(64 << 20, 6, 1));
  EXPECT_EQ(plan.algorithm, Algorithm::kHalvingDoubling);
}

TEST(Choice, UsesTheHierarchyBetweenHosts) {
  const Plan plan = Chosen(AllReduceOf(64 << 10, 16, 8));
  EXPECT_EQ(plan.algorithm, Algorithm::kHierarchical);
  EXPECT_EQ(Chosen(AllReduceOf(64 << 10, 16, 16)).algorithm,
            Algorithm::kHalvingDoubling);
}

TEST(Choice, CutsLargeBroadcastsIntoSegments) {
  Question question = AllReduceOf(64 << 20, 3, 1);
  question.operation = Operation::kBroadcast;
  const Plan plan = Chosen(question);
  EXPECT_EQ(plan.algorithm, Algorithm::kChain);
  EXPECT_GT(plan.segments, 10);
  question.count = 8;
  EXPECT_EQ(Chosen(question).algorithm, Algorithm::kBinomialTree);
}

TEST(Choice, GivesAPlanForEachOperationAndExtremeSizes) {
  for (int operation = 0; operation <= 8; ++operation) {
    for (const int64_t count :
         {int64_t{0}, std::numeric_limits<int64_t>::max() / 7 * 7}) {
      for (const int ranks : {1, 7}) {
        Question question = AllReduceOf(count, ranks, 2);
        question.operation = static_cast<Operation>(operation);
        question.element_size = 8;
        const auto choice = Choose(question, {});
        ASSERT_TRUE(choice.ok()) << choice.status();
        EXPECT_TRUE(CheckPlan(choice->chosen.plan).ok());
      }
    }
  }
}

TEST(Choice, RefusesAnEmptyGroupAndAWrongRoot) {
  Question question;
  question.hosts.clear();
  EXPECT_EQ(Choose(question, {}).status().message(), "a group has no ranks");
  question = AllReduceOf(8, 4, 4);
  question.root = 4;
  EXPECT_EQ(Choose(question, {}).status().message(),
            "root is 4, expected 0 to 3");
}

TEST(Choice, IsForcedByASetting) {
  const auto overrides =
      ParseOverrides("all_reduce=ring, broadcast=binomial-tree");
  ASSERT_FALSE(overrides.ok());  // the space belongs to the name
  const auto right = ParseOverrides("all_reduce=ring,broadcast=binomial-tree");
  ASSERT_TRUE(right.ok()) << right.status();
  EXPECT_EQ(Chosen(AllReduceOf(8, 16, 1), *right).algorithm, Algorithm::kRing);
}

TEST(Choice, SettingNamesWhatIsWrong) {
  EXPECT_EQ(ParseOverrides("")->size(), 0);
  EXPECT_EQ(ParseOverrides("gather=ring").status().message(),
            "gather has no algorithm \"ring\", expected one of binomial-tree");
  EXPECT_EQ(ParseOverrides("barrier").status().message(),
            "barrier has no algorithm \"\", expected one of dissemination");
  EXPECT_EQ(
      ParseOverrides("all_gather=ring,all_gather=bruck").status().message(),
      "all_gather is named twice");
  EXPECT_EQ(ParseOverrides("sum=ring").status().message(),
            "no operation \"sum\", expected one of all_reduce, reduce_scatter, "
            "all_gather, broadcast, reduce, gather, scatter, all_to_all, "
            "barrier");
}

TEST(Choice, IsDescribedInALine) {
  Question question = AllReduceOf(1000, 4, 2);
  question.inside_host = {1, 0.001};
  question.between_hosts = {10, 0.01};
  EXPECT_EQ(Describe(*Choose(question, {})),
            "all_reduce of 1000 elements on 4 ranks: hierarchical with "
            "recursive doubling between hosts, about 24 us (recursive "
            "doubling 40 us, halving-doubling 55 us, ring 75 us)");
  question.operation = Operation::kBarrier;
  question.count = 0;
  EXPECT_EQ(Describe(*Choose(
                question, {{Operation::kBarrier, Algorithm::kDissemination}})),
            "barrier of 0 elements on 4 ranks: dissemination, forced, about "
            "20 us");
}

}  // namespace
}  // namespace penstock::collectives
