#include "ps/consistency/policy.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace penstock::ps {
namespace {

using Judgement = ConsistencyPolicy::Judgement;
using State = ConsistencyPolicy::State;
using Ranks = std::vector<uint32_t>;

constexpr int64_t kUnlimited = ConsistencyPolicy::kUnlimited;

// Workers of ranks 0 to n - 1, and one policy.
class PolicyTest : public testing::Test {
 protected:
  void SetUp() override { Use(0); }

  void Use(int64_t staleness, uint32_t backup = 0, uint32_t workers = 3) {
    policy_ = *ConsistencyPolicy::Create({staleness, backup});
    Membership::Options options;
    options.expected_workers = workers;
    members_ = *Membership::Create(options);
    for (uint32_t rank = 0; rank < workers; ++rank) Join(rank);
  }
  void Join(uint32_t rank) {
    absl::optional<Membership::Steps> steps;
    if (policy_.synchronous()) {
      steps = Membership::Steps{policy_.version(), policy_.version()};
    }
    members_.Join({rank, 1}, absl::UnixEpoch(), steps, &changes_);
  }
  Judgement Push(uint32_t rank, uint64_t clock) {
    const Judgement judgement = policy_.Judge({rank, clock}, members_);
    if (judgement == Judgement::kTake) policy_.Take({rank, clock});
    if (judgement == Judgement::kTake || judgement == Judgement::kLate) {
      members_.Advance(rank, clock + 1, absl::UnixEpoch());
    }
    return judgement;
  }
  // Returns the ranks of the next batch.
  Ranks Next() {
    Ranks ranks;
    auto apply = policy_.Next(members_);
    if (!apply.has_value()) return ranks;
    for (const PushId& push : apply->pushes) ranks.push_back(push.rank);
    return ranks;
  }
  Ranks WaitsFor(uint64_t clock) {
    return members_.Below(policy_.AwaitedStep(clock, members_), kMaxRanks);
  }

  ConsistencyPolicy policy_ = *ConsistencyPolicy::Create({});
  Membership members_ = *Membership::Create({});
  Membership::Changes changes_;
};

TEST_F(PolicyTest, SynchronousStepIsAppliedOnceInOrderOfRank) {
  EXPECT_EQ(Push(2, 0), Judgement::kTake);
  EXPECT_EQ(Next(), Ranks{});
  EXPECT_EQ(Push(0, 0), Judgement::kTake);
  EXPECT_EQ(WaitsFor(1), Ranks{1});
  EXPECT_EQ(Push(1, 0), Judgement::kTake);
  EXPECT_EQ(Next(), (Ranks{0, 1, 2}));
  EXPECT_EQ(policy_.state(), State::kApplying);
  EXPECT_EQ(Next(), Ranks{});
  EXPECT_EQ(WaitsFor(1), Ranks{});
  EXPECT_EQ(policy_.Horizon(members_), 0u);
  EXPECT_EQ(policy_.Applied().size(), 3u);
  EXPECT_EQ(policy_.Horizon(members_), 1u);
  EXPECT_TRUE(policy_.unapplied().empty());
}

TEST_F(PolicyTest, SynchronousPushIsLateOnceTheStepIsClosed) {
  Join(9);  // not required for step 0
  for (uint32_t rank : {0, 1, 2}) Push(rank, 0);
  Next();
  EXPECT_EQ(policy_.Judge({9, 0}, members_), Judgement::kLate);
  policy_.Applied();
  EXPECT_EQ(policy_.Judge({9, 0}, members_), Judgement::kLate);
  EXPECT_EQ(policy_.Judge({9, 1}, members_), Judgement::kTake);
}

TEST_F(PolicyTest, SynchronousPushBeyondTheVersionIsAhead) {
  EXPECT_EQ(Push(0, 1), Judgement::kAhead);
  for (uint32_t rank : {0, 1, 2}) Push(rank, 0);
  Next();
  EXPECT_EQ(Push(0, 1), Judgement::kAhead);
  policy_.Applied();
  EXPECT_EQ(Push(0, 1), Judgement::kTake);
}

TEST_F(PolicyTest, StepWaitsForTheRunToAssemble) {
  Membership::Options options;
  options.expected_workers = 2;
  members_ = *Membership::Create(options);
  Join(0);
  Push(0, 0);
  EXPECT_EQ(Next(), Ranks{});
  Join(1);
  EXPECT_EQ(Next(), Ranks{});
  Push(1, 0);
  EXPECT_EQ(Next(), (Ranks{0, 1}));
}

TEST_F(PolicyTest, DeathReleasesTheStepAndKeepsWhatWasPushed) {
  Push(1, 0);
  members_.Lost({1, 1}, &changes_);
  Push(0, 0);
  EXPECT_EQ(Next(), Ranks{});
  members_.Lost({2, 1}, &changes_);
  EXPECT_EQ(Next(), (Ranks{0, 1}));
}

TEST_F(PolicyTest, StepWithoutPushesIsNotApplied) {
  for (uint32_t rank : {0, 1, 2}) members_.Lost({rank, 1}, &changes_);
  EXPECT_EQ(Next(), Ranks{});
}

TEST_F(PolicyTest, BackupWorkersAreNotWaitedFor) {
  Use(0, /*backup=*/1);
  Push(2, 0);
  EXPECT_EQ(Next(), Ranks{});
  Push(0, 0);
  EXPECT_EQ(Next(), (Ranks{0, 2}));
  EXPECT_EQ(WaitsFor(1), Ranks{});  // only for the apply
  policy_.Applied();
  EXPECT_EQ(Push(1, 0), Judgement::kLate);
  EXPECT_EQ(Push(1, 1), Judgement::kTake);
}

TEST_F(PolicyTest, BackupWorkersNeverLeaveAStepWithoutPushes) {
  Use(0, /*backup=*/5);
  EXPECT_EQ(Next(), Ranks{});
  Push(1, 0);
  EXPECT_EQ(Next(), Ranks{1});
}

TEST_F(PolicyTest, OtherPushesAreAppliedEachByItselfAsTheyCome) {
  Use(3);
  Push(2, 0);
  Push(0, 1);
  Push(1, 0);
  EXPECT_EQ(Next(), Ranks{2});
  EXPECT_EQ(Next(), Ranks{});
  policy_.Applied();
  EXPECT_EQ(Next(), Ranks{0});
  policy_.Applied();
  EXPECT_EQ(Next(), Ranks{1});
  policy_.Applied();
  EXPECT_EQ(policy_.version(), 3u);
}

TEST_F(PolicyTest, RankIsBusyUntilItsPushIsApplied) {
  Use(3);
  Push(2, 0);
  EXPECT_EQ(Push(2, 1), Judgement::kBusy);
  Next();
  EXPECT_EQ(Push(2, 1), Judgement::kBusy);
  policy_.Applied();
  EXPECT_EQ(Push(2, 1), Judgement::kTake);
}

TEST_F(PolicyTest, BoundedStalenessLetsWorkersBeThatFarAhead) {
  Use(2);
  EXPECT_EQ(policy_.Horizon(members_), 2u);
  EXPECT_EQ(Push(0, 3), Judgement::kAhead);
  for (uint64_t clock : {0, 1, 2}) {
    EXPECT_EQ(Push(0, clock), Judgement::kTake);
    Next();
    policy_.Applied();
  }
  EXPECT_EQ(WaitsFor(3), (Ranks{1, 2}));
  EXPECT_EQ(Push(0, 3), Judgement::kAhead);
  Push(1, 0);
  EXPECT_EQ(WaitsFor(3), Ranks{2});  // rank 2 has not done the first step
  Push(2, 0);
  // Expects that workers may push up to clock 3: all have done one step, and
  // the staleness is 2. Pulls are answered only up to clock 2, because the
  // pushes are not applied yet.
  EXPECT_EQ(policy_.Limit(members_), 3u);
  EXPECT_EQ(policy_.Horizon(members_), 2u);
  Next();
  policy_.Applied();
  EXPECT_EQ(policy_.Horizon(members_), 2u);
  Next();
  policy_.Applied();
  EXPECT_EQ(policy_.Horizon(members_), 3u);
}

TEST_F(PolicyTest, PullWaitsForWhatADeadWorkerHasPushed) {
  Use(1);
  Push(0, 0);
  Push(2, 0);
  Next();
  policy_.Applied();
  Next();
  policy_.Applied();
  Push(1, 0);
  members_.Lost({1, 1}, &changes_);
  EXPECT_EQ(policy_.Limit(members_), 2u);
  EXPECT_EQ(policy_.Horizon(members_), 1u);
  Next();
  policy_.Applied();
  EXPECT_EQ(policy_.Horizon(members_), 2u);
}

TEST_F(PolicyTest, AssemblingHoldsWhoIsTooFarAhead) {
  Use(2);
  Membership::Options options;
  options.expected_workers = 2;
  members_ = *Membership::Create(options);
  Join(0);
  for (uint64_t clock : {0, 1, 2}) {
    EXPECT_EQ(Push(0, clock), Judgement::kTake);
    Next();
    policy_.Applied();
  }
  EXPECT_EQ(Push(0, 3), Judgement::kAhead);
  EXPECT_EQ(policy_.Horizon(members_), 2u);
}

TEST_F(PolicyTest, UnlimitedNeverWaits) {
  Use(kUnlimited);
  EXPECT_EQ(policy_.Horizon(members_), kMaxClock);
  EXPECT_EQ(Push(0, 1000), Judgement::kTake);
  EXPECT_EQ(policy_.Horizon(members_), kMaxClock);
  EXPECT_EQ(WaitsFor(5000), Ranks{});
}

TEST_F(PolicyTest, GreatStalenessDoesNotOverflow) {
  Use(kUnlimited - 1);
  EXPECT_EQ(policy_.Horizon(members_), kMaxClock);
  EXPECT_EQ(Push(0, kMaxClock - 1), Judgement::kTake);
  EXPECT_EQ(policy_.Horizon(members_), kMaxClock);
}

TEST_F(PolicyTest, AppliedThatWasNotAskedForIsIgnored) {
  EXPECT_TRUE(policy_.Applied().empty());
  Push(0, 0);
  EXPECT_TRUE(policy_.Applied().empty());
  EXPECT_EQ(policy_.version(), 0u);
  EXPECT_EQ(policy_.unapplied().size(), 1u);
}

TEST_F(PolicyTest, VersionOfACheckpointGoesOn) {
  policy_ = *ConsistencyPolicy::Create({0, 0, 7});
  EXPECT_EQ(policy_.Judge({0, 6}, members_), Judgement::kLate);
  EXPECT_EQ(policy_.Judge({0, 7}, members_), Judgement::kTake);
  EXPECT_EQ(policy_.Judge({0, 8}, members_), Judgement::kAhead);
}

TEST(PolicyOptionsTest, BadOptionsAreNamed) {
  auto error = [](int64_t staleness, uint32_t backup, uint64_t version) {
    return std::string(ConsistencyPolicy::Create({staleness, backup, version})
                           .status()
                           .message());
  };
  EXPECT_NE(error(-1, 0, 0).find("staleness is -1"), std::string::npos);
  EXPECT_NE(error(1, 1, 0).find("backup_workers"), std::string::npos);
  EXPECT_NE(error(0, kMaxRanks, 0).find("backup_workers"), std::string::npos);
  EXPECT_NE(error(0, 0, kMaxClock + 1).find("version"), std::string::npos);
  EXPECT_EQ(error(0, kMaxRanks - 1, kMaxClock), "");
}

// Tests each state with each event. A synchronous policy has received two of
// its three pushes (gathering), or all three (applying). The other policy has
// staleness 2.
TEST_F(PolicyTest, EachStateWithEachEvent) {
  struct Case {
    int64_t staleness;
    State state;
    enum { kTake, kLoss, kApplied } event;
    State next;
    uint64_t version;
  };
  constexpr State kGathering = State::kGathering;
  constexpr State kApplying = State::kApplying;
  const Case cases[] = {
      {0, kGathering, Case::kTake, kApplying, 0},
      {0, kGathering, Case::kLoss, kApplying, 0},
      {0, kGathering, Case::kApplied, kGathering, 0},
      {0, kApplying, Case::kTake, kApplying, 0},
      {0, kApplying, Case::kLoss, kApplying, 0},
      {0, kApplying, Case::kApplied, kGathering, 1},
      {2, kGathering, Case::kTake, kApplying, 2},
      {2, kGathering, Case::kLoss, kGathering, 2},
      {2, kGathering, Case::kApplied, kGathering, 2},
      {2, kApplying, Case::kTake, kApplying, 2},
      {2, kApplying, Case::kLoss, kApplying, 2},
      {2, kApplying, Case::kApplied, kGathering, 3},
  };
  for (const Case& each : cases) {
    Use(each.staleness);
    for (uint32_t rank : {0, 1}) {
      Push(rank, 0);
      if (each.staleness != 0) {
        Next();
        policy_.Applied();
      }
    }
    if (each.state == kApplying) {
      Push(2, 0);
      Next();
    }
    ASSERT_EQ(policy_.state(), each.state);
    switch (each.event) {
      case Case::kTake:
        Push(2, each.state == kApplying ? 1 : 0);
        break;
      case Case::kLoss:
        members_.Lost({2, 1}, &changes_);
        break;
      case Case::kApplied:
        policy_.Applied();
        break;
    }
    Next();
    EXPECT_EQ(policy_.state(), each.next) << (&each - cases);
    EXPECT_EQ(policy_.version(), each.version) << (&each - cases);
  }
}

}  // namespace
}  // namespace penstock::ps
