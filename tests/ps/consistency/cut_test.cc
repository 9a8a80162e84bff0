// Tests that a push is either wholly inside a cut or wholly outside, at all
// tables and servers.

#include "ps/consistency/cut.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "ps/consistency/coordinator.h"
#include "ps/consistency/progress.h"

namespace penstock::ps {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Policies = std::vector<ConsistencyPolicy::Options>;

constexpr int64_t kUnlimited = ConsistencyPolicy::kUnlimited;
const absl::Time kNow = absl::UnixEpoch();

WorkerId Id(uint32_t rank) { return {rank, 100 + rank}; }

// One server's coordinator, and its applied pushes by policy.
class Shard {
 public:
  Shard(uint32_t workers, Policies policies)
      : applied_(policies.size()), coordinator_(Make(workers, policies)) {
    for (uint32_t rank = 0; rank < workers; ++rank) {
      Take(coordinator_.Join(Id(rank), kNow));
    }
  }

  void Push(uint32_t rank, uint64_t clock) {
    Take(coordinator_.Push(++ticket_, Id(rank), clock, kNow));
  }
  // Applies all batches that the coordinator has returned, and the batches that
  // become due by this.
  void Apply() {
    while (!applies_.empty()) {
      Coordinator::Apply apply = std::move(applies_.front());
      applies_.pop_front();
      for (const PushId& push : apply.pushes) {
        applied_[apply.policy].push_back({push.rank, push.clock});
      }
      Take(coordinator_.Applied(apply.policy, kNow));
    }
  }
  bool GoOnTo(const CutPoint& cut) {
    Coordinator::Outcome outcome;
    const bool can = coordinator_.GoOnTo(cut, &outcome);
    Take(std::move(outcome));
    return can;
  }
  void Release() { Take(coordinator_.Release()); }
  void Leave(uint32_t rank) { Take(coordinator_.Leave(Id(rank))); }

  using Applied = std::vector<std::pair<uint32_t, uint64_t>>;
  const Applied& applied(size_t policy) const { return applied_[policy]; }
  Coordinator& operator*() { return coordinator_; }
  Coordinator* operator->() { return &coordinator_; }

 private:
  static Coordinator Make(uint32_t workers, const Policies& policies) {
    Coordinator::Options options;
    options.membership.expected_workers = workers;
    options.policies = policies;
    return *Coordinator::Create(options);
  }
  void Take(Coordinator::Outcome outcome) {
    for (Coordinator::Apply& apply : outcome.applies) {
      applies_.push_back(std::move(apply));
    }
  }

  std::vector<Applied> applied_;
  std::deque<Coordinator::Apply> applies_;
  uint64_t ticket_ = 0;
  Coordinator coordinator_;
};

using Pair = std::pair<uint32_t, uint64_t>;

TEST(CutTest, HeldServerTakesPushesAndAppliesNone) {
  Shard shard(1, {{kUnlimited}});
  EXPECT_THAT(shard->Hold().begun, IsEmpty());
  shard.Push(0, 0);
  shard.Apply();
  EXPECT_THAT(shard.applied(0), IsEmpty());
  EXPECT_EQ(shard->membership().ClockOf(0), 1u);
  shard.Release();
  shard.Apply();
  EXPECT_THAT(shard.applied(0), ElementsAre(Pair(0, 0)));
}

// Tests a push of worker 0 that only the asynchronous table has applied,
// because the synchronous step has not ended.
TEST(CutTest, PushThatOneTableHasIsInWithItsWholeStep) {
  Shard shard(2, {{0}, {kUnlimited}});
  shard.Push(0, 0);
  shard.Apply();
  ASSERT_THAT(shard.applied(0), IsEmpty());
  ASSERT_THAT(shard.applied(1), ElementsAre(Pair(0, 0)));
  const CutPoint cut = FirstCutOf({shard->Hold()}, true);
  EXPECT_EQ(cut.version, 1u);
  ASSERT_TRUE(shard.GoOnTo(cut));
  EXPECT_FALSE(IsAtCut(*shard));
  shard.Push(1, 0);
  shard.Apply();
  EXPECT_TRUE(IsAtCut(*shard));
  // Pushes for the next step, which is not in the cut.
  shard.Push(0, 1);
  shard.Push(1, 1);
  shard.Apply();
  EXPECT_TRUE(IsAtCut(*shard));
  EXPECT_THAT(shard.applied(0), ElementsAre(Pair(0, 0), Pair(1, 0)));
  EXPECT_THAT(shard.applied(1), ElementsAre(Pair(0, 0), Pair(1, 0)));
  for (const RankClock& clock : shard->AppliedClocks()) {
    EXPECT_EQ(clock.clock, 1u) << clock.worker.rank;
  }
  shard.Release();
  shard.Apply();
  EXPECT_EQ(shard.applied(0).size(), 4u);
  EXPECT_EQ(shard.applied(1).size(), 4u);
}

// Tests two tables, of which only one waits for the slower worker.
TEST(CutTest, TablesOfDifferentBackupWorkersAreAtOneStep) {
  Shard shard(2, {{0, 0}, {0, 1}});
  shard.Push(0, 0);
  shard.Apply();
  ASSERT_EQ(shard->policy(0).version(), 0u);
  ASSERT_EQ(shard->policy(1).version(), 1u);
  const CutPoint cut = FirstCutOf({shard->Hold()}, true);
  EXPECT_EQ(cut.version, 1u);
  ASSERT_TRUE(shard.GoOnTo(cut));
  EXPECT_FALSE(IsAtCut(*shard));
  shard.Push(1, 0);
  shard.Push(0, 1);  // would take the second table to step 2
  shard.Apply();
  EXPECT_TRUE(IsAtCut(*shard));
  EXPECT_EQ(shard->policy(0).version(), 1u);
  EXPECT_EQ(shard->policy(1).version(), 1u);
}

TEST(CutTest, PushThatOneServerHasIsWaitedForAtTheOthers) {
  Shard first(2, {{kUnlimited}});
  Shard second(2, {{kUnlimited}});
  second.Push(1, 0);
  second.Apply();
  const CutPoint cut = FirstCutOf({first->Hold(), second->Hold()}, false);
  ASSERT_TRUE(first.GoOnTo(cut));
  ASSERT_TRUE(second.GoOnTo(cut));
  EXPECT_TRUE(IsAtCut(*second));
  EXPECT_FALSE(IsAtCut(*first));
  first.Push(0, 0);  // outside the cut, because `second` has not begun the step
  first.Push(1, 0);
  first.Apply();
  EXPECT_TRUE(IsAtCut(*first));
  EXPECT_THAT(first.applied(0), ElementsAre(Pair(1, 0)));
}

// Tests a server without a synchronous table, which must be at the same step as
// the others.
TEST(CutTest, AsynchronousServerWaitsForTheStepOfTheOthers) {
  Shard synchronous(2, {{0}});
  Shard other(2, {{kUnlimited}});
  other.Push(0, 0);
  other.Apply();
  const CutPoint cut = FirstCutOf({synchronous->Hold(), other->Hold()}, true);
  EXPECT_EQ(cut.version, 1u);
  ASSERT_TRUE(synchronous.GoOnTo(cut));
  ASSERT_TRUE(other.GoOnTo(cut));
  for (Shard* shard : {&synchronous, &other}) {
    EXPECT_FALSE(IsAtCut(**shard));
    if (shard == &synchronous) shard->Push(0, 0);
    shard->Push(1, 0);
    shard->Apply();
    EXPECT_TRUE(IsAtCut(**shard));
  }
}

TEST(CutTest, WorkerThatHasLeftIsNotWaitedFor) {
  Shard first(2, {{kUnlimited}});
  Shard second(2, {{kUnlimited}});
  second.Push(1, 0);
  second.Apply();
  const CutPoint cut = FirstCutOf({first->Hold(), second->Hold()}, false);
  ASSERT_TRUE(first.GoOnTo(cut));
  EXPECT_FALSE(IsAtCut(*first));
  first.Leave(1);
  EXPECT_TRUE(IsAtCut(*first));
}

// Tests a push to two servers. The second server has lost the worker before the
// push arrives.
TEST(CutTest, PushBelowACutDoesNotCountAfterTheCut) {
  Shard first(2, {{kUnlimited}});
  Shard second(2, {{kUnlimited}});
  first.Push(1, 0);
  first.Apply();
  second.Leave(1);
  const CutPoint cut = FirstCutOf({first->Hold(), second->Hold()}, false);
  for (Shard* const shard : {&first, &second}) {
    ASSERT_TRUE(shard->GoOnTo(cut));
    ASSERT_TRUE(IsAtCut(**shard));
    (*shard)->CloseCut();
    shard->Release();
    EXPECT_EQ((*shard)->membership().ClockOf(1), 1u);
  }
  ASSERT_EQ(second->Join(Id(1), kNow).clock, 1u);
  second.Push(1, 0);
  second.Apply();
  EXPECT_THAT(second.applied(0), IsEmpty());
  second.Push(1, 1);
  second.Apply();
  EXPECT_THAT(second.applied(0), ElementsAre(Pair(1, 1)));
}

// The second server has never heard of worker 1.
TEST(CutTest, PushBelowACutDoesNotCountIfItsWorkerJoinsAfterwards) {
  Shard first(2, {{kUnlimited}});
  Shard second(1, {{kUnlimited}});
  first.Push(1, 0);
  first.Apply();
  const CutPoint cut = FirstCutOf({first->Hold(), second->Hold()}, false);
  ASSERT_TRUE(second.GoOnTo(cut));
  ASSERT_TRUE(IsAtCut(*second));
  second->CloseCut();
  second.Release();
  EXPECT_EQ(second->Join(Id(1), kNow).clock, 1u);
  second.Push(1, 0);
  second.Push(1, 1);
  second.Apply();
  EXPECT_THAT(second.applied(0), ElementsAre(Pair(1, 1)));
}

// Tests a server without a synchronous table and, at the time of the cut,
// without a member.
TEST(CutTest, WorkerThatJoinsAfterACutBeginsAtItsStep) {
  Shard shard(1, {{kUnlimited}});
  shard.Leave(0);
  ASSERT_TRUE(shard.GoOnTo(CutPoint::OfVersion(5)));
  ASSERT_TRUE(IsAtCut(*shard));
  shard->CloseCut();
  shard.Release();
  EXPECT_EQ(shard->AppliedFloor(), 5u);
  EXPECT_EQ(shard->Join(Id(1), kNow).clock, 5u);
  shard.Push(1, 4);
  shard.Push(1, 5);
  shard.Apply();
  EXPECT_THAT(shard.applied(0), ElementsAre(Pair(1, 5)));
}

// Tests a cut that would be beyond all steps of a rank: no later push would
// count.
TEST(CutTest, CutThatNoServersChooseIsRefused) {
  constexpr uint64_t kFar = Coordinator::kMaxLead + 2;
  const auto at = [](uint32_t rank, uint64_t clock) {
    return CutPoint{absl::nullopt, {{{rank, 0}, clock}}};
  };
  Shard asynchronous(1, {{kUnlimited}});
  EXPECT_TRUE(asynchronous->CheckCut({}, false).ok());
  EXPECT_TRUE(asynchronous->CheckCut(at(5, kFar - 1), false).ok());
  for (const CutPoint& cut :
       {CutPoint::OfVersion(1), CutPoint::OfVersion(kMaxClock), at(5, kFar),
        at(kMaxRanks, 1)}) {
    EXPECT_TRUE(absl::IsInvalidArgument(asynchronous->CheckCut(cut, false)));
  }
  Shard synchronous(1, {{0}});
  EXPECT_TRUE(synchronous->CheckCut(CutPoint::OfVersion(kFar - 1), true).ok());
  for (const CutPoint& cut :
       {CutPoint(), at(0, 1), CutPoint::OfVersion(kFar)}) {
    EXPECT_TRUE(absl::IsInvalidArgument(synchronous->CheckCut(cut, true)));
  }
}

// Tests a worker that pushes after the synchronous table has ended the step
// without it. The asynchronous table could still accept the push.
TEST(CutTest, SlowMemberForgoesTheStepsOfACut) {
  Shard shard(2, {{0, 1}, {kUnlimited}});
  shard.Push(0, 0);
  shard.Apply();
  const CutPoint cut = FirstCutOf({shard->Hold()}, true);
  ASSERT_EQ(cut.version, 1u);
  ASSERT_TRUE(shard.GoOnTo(cut));
  ASSERT_TRUE(IsAtCut(*shard));
  shard->CloseCut();
  shard.Push(1, 0);
  shard.Release();
  shard.Apply();
  EXPECT_THAT(shard.applied(1), ElementsAre(Pair(0, 0)));
}

TEST(CutTest, ServerThatIsPastTheCutSaysSoAndGoesOn) {
  Shard shard(1, {{kUnlimited}});
  shard.Push(0, 0);
  shard.Apply();
  EXPECT_FALSE(shard.GoOnTo({}));
  EXPECT_FALSE(shard.GoOnTo(CutPoint::OfVersion(0)));
  shard.Push(0, 1);
  shard.Apply();
  EXPECT_EQ(shard.applied(0).size(), 2u);
  Shard synchronous(1, {{0}});
  synchronous.Push(0, 0);
  synchronous.Apply();
  EXPECT_FALSE(synchronous.GoOnTo(CutPoint::OfVersion(0)));
}

TEST(CutTest, FloorOfACutIsBelowWhatIsNotIn) {
  Shard shard(2, {{kUnlimited}});
  shard->Hold();
  shard.Push(0, 0);
  shard.Push(1, 0);
  shard.Push(0, 1);
  shard.Push(1, 1);
  EXPECT_EQ(shard->AppliedFloor(), 0u);
  shard.Release();
  shard.Apply();
  EXPECT_EQ(shard->AppliedFloor(), shard->membership().floor());
}

}  // namespace
}  // namespace penstock::ps
