#include "ps/sync_barrier.h"

#include <gtest/gtest.h>

#include <vector>

namespace penstock::ps {
namespace {

using EventKind = SyncBarrier::EventKind;
using State = SyncBarrier::State;
using Verdict = SyncBarrier::Verdict;
using Ranks = std::vector<uint32_t>;

// A barrier of two workers, and a clock that moves when told to.
class SyncBarrierTest : public testing::Test {
 protected:
  SyncBarrier::Outcome Send(EventKind kind, uint32_t rank = 0,
                            uint64_t step = 0, uint64_t incarnation = 1) {
    return barrier_.Handle({kind, {rank, incarnation}, step}, now_);
  }

  void JoinBoth() {
    Send(EventKind::kJoin, 0);
    Send(EventKind::kJoin, 1);
  }

  void CompleteStep(uint64_t step) {
    Send(EventKind::kPush, 0, step);
    ASSERT_TRUE(Send(EventKind::kPush, 1, step).apply.has_value());
    Send(EventKind::kApplied);
  }

  SyncBarrier barrier_{{/*expected_workers=*/2, absl::Seconds(10),
                        /*assemble_timeout=*/absl::Seconds(60)}};
  absl::Time now_ = absl::UnixEpoch();
};

TEST_F(SyncBarrierTest, StepWaitsForAllAndAppliesInRankOrder) {
  JoinBoth();
  EXPECT_FALSE(Send(EventKind::kPush, 1).apply.has_value());
  EXPECT_EQ(barrier_.Missing(), Ranks{0});
  auto outcome = Send(EventKind::kPush, 0);
  ASSERT_TRUE(outcome.apply.has_value());
  EXPECT_EQ(outcome.apply->step, 0u);
  EXPECT_EQ(outcome.apply->ranks, (Ranks{0, 1}));
  EXPECT_EQ(barrier_.version(), 0u);
  EXPECT_EQ(barrier_.state(), State::kApplying);
  Send(EventKind::kApplied);
  EXPECT_EQ(barrier_.version(), 1u);
  EXPECT_EQ(barrier_.state(), State::kGathering);
}

TEST_F(SyncBarrierTest, FirstStepWaitsForExpectedWorkers) {
  Send(EventKind::kJoin, 0);
  EXPECT_FALSE(Send(EventKind::kPush, 0).apply.has_value());
  EXPECT_EQ(barrier_.state(), State::kAssembling);
  Send(EventKind::kJoin, 1);
  EXPECT_EQ(Send(EventKind::kPush, 1).apply->ranks, (Ranks{0, 1}));
}

TEST_F(SyncBarrierTest, AssemblingEndsAfterItsTimeout) {
  Send(EventKind::kJoin, 0);
  Send(EventKind::kPush, 0);
  for (int i = 0; i < 6; ++i) {
    EXPECT_FALSE(Send(EventKind::kHeartbeat, 0).apply.has_value());
    now_ += absl::Seconds(9.9);
  }
  Send(EventKind::kHeartbeat, 0);
  now_ += absl::Seconds(1);
  EXPECT_LE(barrier_.NextDeadline(), now_);
  EXPECT_EQ(Send(EventKind::kTick).apply->ranks, Ranks{0});
}

TEST_F(SyncBarrierTest, AssemblingStartsAnewWhenAllHaveGone) {
  Send(EventKind::kJoin, 0);
  Send(EventKind::kLost, 0);
  EXPECT_EQ(barrier_.NextDeadline(), absl::InfiniteFuture());
  now_ += absl::Hours(1);
  Send(EventKind::kTick);
  EXPECT_EQ(barrier_.state(), State::kAssembling);
}

TEST_F(SyncBarrierTest, DeadWorkerReleasesTheBarrier) {
  JoinBoth();
  Send(EventKind::kPush, 0);
  auto outcome = Send(EventKind::kLost, 1);
  ASSERT_TRUE(outcome.apply.has_value());
  EXPECT_EQ(outcome.apply->ranks, Ranks{0});
  EXPECT_EQ(outcome.notes.size(), 1u);
  EXPECT_EQ(barrier_.members_lost(), 1u);
}

TEST_F(SyncBarrierTest, SilentWorkerReleasesTheBarrierAfterItsLease) {
  JoinBoth();
  now_ += absl::Seconds(9);
  Send(EventKind::kPush, 0);
  EXPECT_FALSE(Send(EventKind::kTick).apply.has_value());
  now_ += absl::Seconds(1);
  EXPECT_LE(barrier_.NextDeadline(), now_);
  EXPECT_EQ(Send(EventKind::kTick).apply->ranks, Ranks{0});
  EXPECT_EQ(barrier_.live_members(), 1u);
}

TEST_F(SyncBarrierTest, GradientOfAWorkerThatDiedAfterwardsCounts) {
  JoinBoth();
  Send(EventKind::kPush, 1);
  Send(EventKind::kLost, 1);
  EXPECT_EQ(Send(EventKind::kPush, 0).apply->ranks, (Ranks{0, 1}));
}

TEST_F(SyncBarrierTest, OrderlyLeaveIsNotADeath) {
  JoinBoth();
  Send(EventKind::kPush, 0);
  EXPECT_TRUE(Send(EventKind::kLeave, 1).apply.has_value());
  EXPECT_EQ(barrier_.members_lost(), 0u);
}

TEST_F(SyncBarrierTest, RepeatedPushCountsOnce) {
  JoinBoth();
  EXPECT_EQ(Send(EventKind::kPush, 0).verdict, Verdict::kAccepted);
  EXPECT_EQ(Send(EventKind::kPush, 0).verdict, Verdict::kDuplicate);
  Send(EventKind::kPush, 1);
  EXPECT_EQ(Send(EventKind::kPush, 0).verdict, Verdict::kDuplicate);
  EXPECT_EQ(Send(EventKind::kPush, 1).apply, absl::nullopt);
}

TEST_F(SyncBarrierTest, LatePushIsToldFromAStepAhead) {
  JoinBoth();
  CompleteStep(0);
  EXPECT_EQ(Send(EventKind::kPush, 0, 0).verdict, Verdict::kLate);
  EXPECT_EQ(Send(EventKind::kPush, 0, 2).verdict, Verdict::kAhead);
  EXPECT_EQ(barrier_.Missing(), (Ranks{0, 1}));
}

TEST_F(SyncBarrierTest, StrangerMayNotPush) {
  JoinBoth();
  EXPECT_EQ(Send(EventKind::kPush, 7).verdict, Verdict::kNotMember);
}

TEST_F(SyncBarrierTest, NewJoinerIsRequiredFromTheNextStep) {
  JoinBoth();
  Send(EventKind::kJoin, 2);
  CompleteStep(0);
  Send(EventKind::kPush, 0, 1);
  EXPECT_FALSE(Send(EventKind::kPush, 1, 1).apply.has_value());
  EXPECT_EQ(Send(EventKind::kPush, 2, 1).apply->ranks, (Ranks{0, 1, 2}));
}

TEST_F(SyncBarrierTest, NewJoinerThatIsFastCountsAtOnce) {
  JoinBoth();
  Send(EventKind::kJoin, 2);
  EXPECT_EQ(Send(EventKind::kPush, 2).verdict, Verdict::kAccepted);
  Send(EventKind::kPush, 0);
  EXPECT_EQ(Send(EventKind::kPush, 1).apply->ranks, (Ranks{0, 1, 2}));
}

TEST_F(SyncBarrierTest, JoinWhileApplyingIsRequiredFromTheNextStep) {
  JoinBoth();
  Send(EventKind::kPush, 0);
  Send(EventKind::kPush, 1);
  Send(EventKind::kJoin, 2);
  EXPECT_EQ(Send(EventKind::kPush, 2).verdict, Verdict::kLate);
  Send(EventKind::kApplied);
  EXPECT_EQ(barrier_.Missing(), (Ranks{0, 1, 2}));
}

TEST_F(SyncBarrierTest, DeathWhileApplyingDoesNotApplyTwice) {
  JoinBoth();
  Send(EventKind::kPush, 0);
  ASSERT_TRUE(Send(EventKind::kPush, 1).apply.has_value());
  EXPECT_FALSE(Send(EventKind::kLost, 1).apply.has_value());
  EXPECT_FALSE(Send(EventKind::kApplied).apply.has_value());
  EXPECT_EQ(barrier_.version(), 1u);
}

TEST_F(SyncBarrierTest, NewIncarnationSupersedesTheOld) {
  JoinBoth();
  Send(EventKind::kJoin, 1, 0, /*incarnation=*/2);
  EXPECT_EQ(barrier_.members_lost(), 1u);
  EXPECT_EQ(Send(EventKind::kPush, 1).verdict, Verdict::kSuperseded);
  EXPECT_EQ(Send(EventKind::kHeartbeat, 1).verdict, Verdict::kSuperseded);
  Send(EventKind::kLost, 1);  // the old connection breaks at last
  EXPECT_EQ(barrier_.live_members(), 2u);
  EXPECT_EQ(Send(EventKind::kPush, 1, 0, 2).verdict, Verdict::kAccepted);
}

TEST_F(SyncBarrierTest, HeartbeatAfterTheLeaseJoinsAgain) {
  JoinBoth();
  now_ += absl::Seconds(11);
  Send(EventKind::kTick);
  EXPECT_EQ(barrier_.live_members(), 0u);
  EXPECT_EQ(Send(EventKind::kHeartbeat, 0).verdict, Verdict::kAccepted);
  EXPECT_EQ(Send(EventKind::kPush, 0).apply->ranks, Ranks{0});
}

TEST_F(SyncBarrierTest, DrainingRefusesEverythingInEveryState) {
  JoinBoth();
  Send(EventKind::kPush, 0);
  Send(EventKind::kPush, 1);
  Send(EventKind::kDrain);
  for (EventKind kind :
       {EventKind::kJoin, EventKind::kHeartbeat, EventKind::kPush,
        EventKind::kTick, EventKind::kLost, EventKind::kLeave}) {
    EXPECT_EQ(Send(kind).verdict, Verdict::kDraining);
  }
  Send(EventKind::kApplied);
  EXPECT_EQ(barrier_.version(), 1u);
  EXPECT_EQ(barrier_.state(), State::kDraining);
  EXPECT_EQ(barrier_.NextDeadline(), absl::InfiniteFuture());
}

}  // namespace
}  // namespace penstock::ps
