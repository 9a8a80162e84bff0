#include "ps/replication/push_history.h"

#include "gtest/gtest.h"

namespace penstock::ps::replication {
namespace {

using Verdict = PushHistory::Verdict;

Entry JoinOf(uint64_t seq, const WorkerId& worker) {
  Entry entry;
  entry.seq = seq;
  entry.joins = worker;
  return entry;
}

Entry PushOf(uint64_t seq, const WorkerId& worker, uint64_t clock) {
  Entry entry;
  entry.seq = seq;
  entry.pushes = {{worker, clock}};
  return entry;
}

TEST(PushHistoryTest, TheLastPushIsRecognised) {
  PushHistory history;
  const WorkerId worker = {3, 77};
  EXPECT_EQ(history.Judge({worker, 0}).verdict, Verdict::kNotJoined);
  history.Record(JoinOf(1, worker));
  EXPECT_EQ(history.Judge({worker, 4}).verdict, Verdict::kNew);
  history.Record(PushOf(2, worker, 4));
  EXPECT_EQ(history.Judge({worker, 4}).verdict, Verdict::kRepeated);
  EXPECT_EQ(history.Judge({worker, 4}).seq, 2u);
  EXPECT_EQ(history.Judge({worker, 3}).verdict, Verdict::kPassed);
  EXPECT_EQ(history.Judge({worker, 5}).verdict, Verdict::kNew);
  EXPECT_EQ(history.ClockOf(3)->clock, 5u);
  EXPECT_FALSE(history.ClockOf(4).has_value());
}

TEST(PushHistoryTest, AStepOfAnEarlierProcessIsPassed) {
  PushHistory history;
  history.Record(JoinOf(1, {0, 10}));
  history.Record(PushOf(2, {0, 10}, 7));
  EXPECT_EQ(history.JudgeJoin({0, 11}).verdict, Verdict::kNew);
  history.Record(JoinOf(3, {0, 11}));
  EXPECT_EQ(history.Judge({{0, 11}, 7}).verdict, Verdict::kPassed);
  EXPECT_EQ(history.Judge({{0, 11}, 8}).verdict, Verdict::kNew);
  EXPECT_EQ(history.Judge({{0, 10}, 8}).verdict, Verdict::kSuperseded);
  EXPECT_EQ(history.Judge({{0, 12}, 8}).verdict, Verdict::kNotJoined);
  EXPECT_EQ(history.JudgeJoin({0, 10}).verdict, Verdict::kSuperseded);
  EXPECT_EQ(history.JudgeJoin({0, 11}).verdict, Verdict::kRepeated);
  EXPECT_EQ(history.JudgeJoin({0, 11}).seq, 3u);
}

TEST(PushHistoryTest, NumbersOfAPeerAreBounded) {
  PushHistory history;
  EXPECT_EQ(history.JudgeJoin({kMaxRanks, 1}).verdict, Verdict::kInvalid);
  EXPECT_EQ(history.Judge({{kMaxRanks, 1}, 1}).verdict, Verdict::kInvalid);
  history.Record(JoinOf(1, {0, 1}));
  EXPECT_EQ(history.Judge({{0, 1}, kMaxClock}).verdict, Verdict::kInvalid);
  EXPECT_EQ(history.Judge({{0, 1}, kMaxClock - 1}).verdict, Verdict::kNew);
}

TEST(PushHistoryTest, AllPushesOfAStepAreRecorded) {
  PushHistory history;
  Entry step;
  step.seq = 3;
  for (uint32_t rank : {0, 1, 2}) {
    history.Record(JoinOf(rank, {rank, 5}));
    step.pushes.push_back({{rank, 5}, 9});
  }
  history.Record(step);
  for (uint32_t rank : {0, 1, 2}) {
    EXPECT_EQ(history.Judge({{rank, 5}, 9}).seq, 3u) << rank;
  }
}

}  // namespace
}  // namespace penstock::ps::replication
