#include "tests/ps/replication/linearizability.h"

#include <algorithm>
#include <random>

#include "gtest/gtest.h"

namespace penstock::ps::replication {
namespace {

absl::Time At(double seconds) {
  return absl::UnixEpoch() + absl::Seconds(seconds);
}

Operation Push(double called, double answered, uint64_t value) {
  return {Operation::kPush, At(called), At(answered), value};
}

Operation LostPush(double called, uint64_t value) {
  return {Operation::kPush, At(called), absl::InfiniteFuture(), value};
}

Operation Pull(double called, double answered, uint64_t value) {
  return {Operation::kPull, At(called), At(answered), value};
}

bool IsLinearizable(const std::vector<Operation>& history) {
  return JudgeHistory(history) == Judgement::kLinearizable;
}

TEST(LinearizabilityTest, GoodHistories) {
  EXPECT_TRUE(IsLinearizable({}));
  EXPECT_TRUE(IsLinearizable({Push(0, 1, 5), Pull(2, 3, 5)}));
  // Tests a pull during a push. The pull may see the push or not.
  EXPECT_TRUE(IsLinearizable({Push(0, 9, 5), Pull(2, 3, 5)}));
  EXPECT_TRUE(IsLinearizable({Push(0, 9, 5), Pull(2, 3, 0)}));
  EXPECT_TRUE(IsLinearizable({Push(0, 9, 5), Pull(2, 3, 0), Pull(4, 5, 5)}));
  // Tests a push without an answer, which may take effect late or never.
  EXPECT_TRUE(IsLinearizable({LostPush(0, 5), Pull(1, 2, 0)}));
  EXPECT_TRUE(IsLinearizable({LostPush(0, 5), Pull(1, 2, 0), Pull(8, 9, 5)}));
  // Tests concurrent pushes, which may take effect in any order.
  EXPECT_TRUE(IsLinearizable(
      {Push(0, 9, 1), Push(0, 9, 2), Pull(1, 2, 2), Pull(3, 4, 3)}));
}

TEST(LinearizabilityTest, ALostPushIsFound) {
  EXPECT_FALSE(IsLinearizable({Push(0, 1, 5), Pull(2, 3, 0)}));
  EXPECT_FALSE(IsLinearizable(
      {Push(0, 1, 5), Push(2, 3, 7), Pull(4, 5, 12), Pull(6, 7, 7)}));
}

TEST(LinearizabilityTest, APushThatCountsTwiceIsFound) {
  EXPECT_FALSE(IsLinearizable({Push(0, 1, 5), Pull(2, 3, 10)}));
  EXPECT_FALSE(IsLinearizable({LostPush(0, 5), Pull(2, 3, 10)}));
}

TEST(LinearizabilityTest, AnOldValueIsFound) {
  // Tests a pull that misses a push, after another pull has seen it.
  EXPECT_FALSE(IsLinearizable({Push(0, 9, 5), Pull(1, 2, 5), Pull(3, 4, 0)}));
  EXPECT_FALSE(IsLinearizable({LostPush(0, 5), Pull(1, 2, 5), Pull(3, 4, 0)}));
}

TEST(LinearizabilityTest, APushBeforeItsCallIsFound) {
  EXPECT_FALSE(IsLinearizable({Pull(0, 1, 5), Push(2, 3, 5)}));
}

TEST(LinearizabilityTest, TwoOrdersAreFound) {
  // Two readers see two pushes in different orders.
  EXPECT_FALSE(IsLinearizable(
      {Push(0, 9, 1), Push(0, 9, 2), Pull(1, 2, 1), Pull(3, 4, 2)}));
}

TEST(LinearizabilityTest, ALargeSearchGivesUp) {
  std::vector<Operation> history;
  for (uint64_t i = 0; i < 30; ++i) {
    history.push_back(Push(0, 9, uint64_t{1} << i));
  }
  history.push_back(Pull(10, 11, 12345));
  EXPECT_EQ(JudgeHistory(history, 1000), Judgement::kTooLarge);
}

// Makes calls that take effect at a random moment, and then spoils one answer.
TEST(LinearizabilityTest, RandomHistoriesAreJudgedByOneWrongAnswer) {
  std::mt19937_64 random(4711);
  auto below = [&](uint64_t bound) { return random() % bound; };
  for (int round = 0; round < 200; ++round) {
    std::vector<std::pair<double, Operation>> calls;  // moment of effect
    for (int client = 0; client < 3; ++client) {
      double now = 0;
      for (int i = 0; i < 10; ++i) {
        const double called = now + 0.01 * static_cast<double>(below(100));
        const double effect = called + 0.01 * static_cast<double>(below(100));
        now = effect + 0.01 * static_cast<double>(1 + below(100));
        const bool is_push = below(2) == 0;
        calls.push_back({effect, is_push ? Push(called, now, random())
                                         : Pull(called, now, 0)});
      }
    }
    std::sort(calls.begin(), calls.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    uint64_t sum = 0;
    std::vector<Operation> history;
    for (auto& [effect, call] : calls) {
      if (call.kind == Operation::kPush) sum += call.value;
      if (call.kind == Operation::kPull) call.value = sum;
      history.push_back(call);
    }
    ASSERT_TRUE(IsLinearizable(history)) << round;
    history.push_back(Pull(1000, 1001, sum + 1));
    ASSERT_FALSE(IsLinearizable(history)) << round;
  }
}

}  // namespace
}  // namespace penstock::ps::replication
