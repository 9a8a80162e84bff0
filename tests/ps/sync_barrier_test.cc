#include "ps/sync_barrier.h"

#include <gtest/gtest.h>

#include <string>
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

// Every state with every event. Two workers are expected, of ranks 0 and 1:
//   assembling  0 has joined and pushed, 1 is not there
//   gathering   both have joined, 0 has pushed
//   applying    both have pushed
//   draining    drained while applying
// Events are of rank 1, which acts for the first time where it can: its push is
// for step 0, a tick comes when its lease is over, rank 0's having been
// renewed.
struct PairCase {
  State state;
  EventKind kind;
  Verdict verdict;
  State next;
  Ranks applied;  // the ranks of `apply`; empty for none
  uint64_t version;
  size_t members;
};

std::string NameOf(State state) {
  switch (state) {
    case State::kAssembling:
      return "Assembling";
    case State::kGathering:
      return "Gathering";
    case State::kApplying:
      return "Applying";
    case State::kDraining:
      return "Draining";
  }
  return "";
}

std::string NameOf(EventKind kind) {
  switch (kind) {
    case EventKind::kJoin:
      return "Join";
    case EventKind::kHeartbeat:
      return "Heartbeat";
    case EventKind::kLeave:
      return "Leave";
    case EventKind::kLost:
      return "Lost";
    case EventKind::kPush:
      return "Push";
    case EventKind::kApplied:
      return "Applied";
    case EventKind::kTick:
      return "Tick";
    case EventKind::kDrain:
      return "Drain";
  }
  return "";
}

class SyncBarrierPairTest : public SyncBarrierTest,
                            public testing::WithParamInterface<PairCase> {
 protected:
  void Reach(State state) {
    Send(EventKind::kJoin, 0);
    Send(EventKind::kPush, 0);
    if (state == State::kAssembling) return;
    Send(EventKind::kJoin, 1);
    if (state == State::kGathering) return;
    Send(EventKind::kPush, 1);
    if (state == State::kApplying) return;
    Send(EventKind::kDrain);
  }

  void LetRankOneFallSilent() {
    now_ += absl::Seconds(6);
    Send(EventKind::kHeartbeat, 0);
    now_ += absl::Seconds(6);
  }
};

TEST_P(SyncBarrierPairTest, DoesWhatTheTableSays) {
  const PairCase& expected = GetParam();
  Reach(expected.state);
  ASSERT_EQ(barrier_.state(), expected.state);
  if (expected.kind == EventKind::kTick) LetRankOneFallSilent();
  SyncBarrier::Outcome outcome = Send(expected.kind, 1);
  EXPECT_EQ(outcome.verdict, expected.verdict);
  EXPECT_EQ(barrier_.state(), expected.next);
  EXPECT_EQ(outcome.apply.has_value() ? outcome.apply->ranks : Ranks{},
            expected.applied);
  EXPECT_EQ(barrier_.version(), expected.version);
  EXPECT_EQ(barrier_.live_members(), expected.members);
}

constexpr State kAssembling = State::kAssembling;
constexpr State kGathering = State::kGathering;
constexpr State kApplying = State::kApplying;
constexpr State kDraining = State::kDraining;
constexpr Verdict kAccepted = Verdict::kAccepted;
constexpr Verdict kRefused = Verdict::kDraining;

const PairCase kPairs[] = {
    // The second join completes the workers and, with 0's push waiting, opens
    // step 0, which now waits for 1.
    {kAssembling, EventKind::kJoin, kAccepted, kGathering, {}, 0, 2},
    {kAssembling, EventKind::kHeartbeat, kAccepted, kGathering, {}, 0, 2},
    {kAssembling, EventKind::kLeave, kAccepted, kAssembling, {}, 0, 1},
    {kAssembling, EventKind::kLost, kAccepted, kAssembling, {}, 0, 1},
    {kAssembling, EventKind::kPush, Verdict::kNotMember, kAssembling, {}, 0, 1},
    {kAssembling, EventKind::kApplied, kAccepted, kAssembling, {}, 0, 1},
    {kAssembling, EventKind::kTick, kAccepted, kAssembling, {}, 0, 1},
    {kAssembling, EventKind::kDrain, kAccepted, kDraining, {}, 0, 1},

    {kGathering, EventKind::kJoin, kAccepted, kGathering, {}, 0, 2},
    {kGathering, EventKind::kHeartbeat, kAccepted, kGathering, {}, 0, 2},
    {kGathering, EventKind::kLeave, kAccepted, kApplying, {0}, 0, 1},
    {kGathering, EventKind::kLost, kAccepted, kApplying, {0}, 0, 1},
    {kGathering, EventKind::kPush, kAccepted, kApplying, {0, 1}, 0, 2},
    {kGathering, EventKind::kApplied, kAccepted, kGathering, {}, 0, 2},
    {kGathering, EventKind::kTick, kAccepted, kApplying, {0}, 0, 1},
    {kGathering, EventKind::kDrain, kAccepted, kDraining, {}, 0, 2},

    {kApplying, EventKind::kJoin, kAccepted, kApplying, {}, 0, 2},
    {kApplying, EventKind::kHeartbeat, kAccepted, kApplying, {}, 0, 2},
    {kApplying, EventKind::kLeave, kAccepted, kApplying, {}, 0, 1},
    {kApplying, EventKind::kLost, kAccepted, kApplying, {}, 0, 1},
    {kApplying, EventKind::kPush, Verdict::kDuplicate, kApplying, {}, 0, 2},
    {kApplying, EventKind::kApplied, kAccepted, kGathering, {}, 1, 2},
    {kApplying, EventKind::kTick, kAccepted, kApplying, {}, 0, 1},
    {kApplying, EventKind::kDrain, kAccepted, kDraining, {}, 0, 2},

    {kDraining, EventKind::kJoin, kRefused, kDraining, {}, 0, 2},
    {kDraining, EventKind::kHeartbeat, kRefused, kDraining, {}, 0, 2},
    {kDraining, EventKind::kLeave, kRefused, kDraining, {}, 0, 2},
    {kDraining, EventKind::kLost, kRefused, kDraining, {}, 0, 2},
    {kDraining, EventKind::kPush, kRefused, kDraining, {}, 0, 2},
    {kDraining, EventKind::kApplied, kAccepted, kDraining, {}, 1, 2},
    {kDraining, EventKind::kTick, kRefused, kDraining, {}, 0, 2},
    {kDraining, EventKind::kDrain, kRefused, kDraining, {}, 0, 2},
};

INSTANTIATE_TEST_SUITE_P(EveryPair, SyncBarrierPairTest,
                         testing::ValuesIn(kPairs),
                         [](const testing::TestParamInfo<PairCase>& info) {
                           return NameOf(info.param.state) +
                                  NameOf(info.param.kind);
                         });

TEST_F(SyncBarrierTest, AppliedTwiceCountsOnce) {
  JoinBoth();
  CompleteStep(0);
  Send(EventKind::kApplied);
  EXPECT_EQ(barrier_.version(), 1u);
  Send(EventKind::kPush, 0, 1);
  Send(EventKind::kPush, 1, 1);
  Send(EventKind::kDrain);
  Send(EventKind::kApplied);
  Send(EventKind::kApplied);
  EXPECT_EQ(barrier_.version(), 2u);
}

}  // namespace
}  // namespace penstock::ps
