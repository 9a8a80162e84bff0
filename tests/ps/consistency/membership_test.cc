#include "ps/consistency/membership.h"

#include <cstdint>
#include <limits>
#include <vector>

#include "gtest/gtest.h"

namespace penstock::ps {
namespace {

using Standing = Membership::Standing;
using State = Membership::State;
using Ranks = std::vector<uint32_t>;

Membership::Options TwoWorkers() {
  Membership::Options options;
  options.expected_workers = 2;
  options.lease = absl::Seconds(10);
  options.assemble_timeout = absl::Seconds(60);
  return options;
}

// A membership of two expected workers. The test sets the time.
class MembershipTest : public testing::Test {
 protected:
  Standing Join(uint32_t rank, uint64_t incarnation = 1) {
    return members_.Join({rank, incarnation}, now_, steps_, &changes_);
  }
  Standing Beat(uint32_t rank, uint64_t incarnation = 1) {
    return members_.Heartbeat({rank, incarnation}, now_, steps_, &changes_);
  }
  void Tick() { members_.Tick(now_, &changes_); }
  Ranks Below(uint64_t step) { return members_.Below(step, kMaxRanks); }
  void JoinBoth() {
    Join(0);
    Join(1);
  }

  Membership members_ = *Membership::Create(TwoWorkers());
  absl::optional<Membership::Steps> steps_;
  Membership::Changes changes_;
  absl::Time now_ = absl::UnixEpoch();
};

TEST_F(MembershipTest, RunsWhenAllExpectedAreThere) {
  EXPECT_EQ(Join(0), Standing::kMember);
  EXPECT_EQ(members_.state(), State::kAssembling);
  EXPECT_EQ(Join(1), Standing::kMember);
  EXPECT_EQ(members_.state(), State::kRunning);
  EXPECT_EQ(changes_.notes.size(), 2u);
}

TEST_F(MembershipTest, AssemblingEndsAfterItsTimeoutAndSaysSo) {
  Join(0);
  for (int i = 0; i < 6; ++i) {
    now_ += absl::Seconds(9.5);
    Beat(0);
    Tick();
    EXPECT_EQ(members_.state(), State::kAssembling);
  }
  now_ = absl::UnixEpoch() + absl::Seconds(60);
  EXPECT_LE(members_.NextDeadline(), now_);
  changes_ = {};
  Tick();
  EXPECT_EQ(members_.state(), State::kRunning);
  EXPECT_EQ(changes_.notes.size(), 1u);
  EXPECT_EQ(members_.size(), 1u);
}

TEST_F(MembershipTest, AssemblingStartsAnewWhenAllHaveGone) {
  for (bool orderly : {true, false}) {
    Join(0);
    if (orderly) {
      members_.Leave({0, 1}, &changes_);
    } else {
      members_.Lost({0, 1}, &changes_);
    }
    EXPECT_EQ(members_.NextDeadline(), absl::InfiniteFuture());
    now_ += absl::Hours(1);
    Tick();
    EXPECT_EQ(members_.state(), State::kAssembling);
  }
}

TEST_F(MembershipTest, FloorStaysWhileTheRunAssembles) {
  Join(0);
  members_.Advance(0, 3, now_);
  EXPECT_EQ(members_.floor(), 0u);
  Join(1);
  EXPECT_EQ(members_.floor(), 0u);
  members_.Advance(1, 2, now_);
  EXPECT_EQ(members_.floor(), 2u);
}

TEST_F(MembershipTest, FloorRisesWhenTheRunIsAssembled) {
  Join(0);
  members_.Advance(0, 2, now_);
  members_.Lost({0, 1}, &changes_);
  Join(1);
  members_.Advance(1, 3, now_);
  EXPECT_EQ(members_.floor(), 0u);
  Join(0, 2);
  EXPECT_EQ(members_.state(), State::kRunning);
  EXPECT_EQ(members_.floor(), 2u);
}

TEST_F(MembershipTest, FloorIsTheLeastProgressAndNeverGoesBack) {
  JoinBoth();
  members_.Advance(0, 5, now_);
  members_.Advance(1, 3, now_);
  EXPECT_EQ(members_.floor(), 3u);
  members_.Lost({1, 1}, &changes_);
  EXPECT_EQ(members_.floor(), 5u);
  members_.Lost({0, 1}, &changes_);
  EXPECT_EQ(members_.floor(), 5u);
  Join(7);
  EXPECT_EQ(members_.ClockOf(7), 5u);
  EXPECT_EQ(members_.floor(), 5u);
}

TEST_F(MembershipTest, ClockNeverGoesBackAndAStrangerHasNone) {
  JoinBoth();
  members_.Advance(0, 5, now_);
  members_.Advance(0, 4, now_);
  EXPECT_EQ(members_.ClockOf(0), 5u);
  members_.Advance(9, 5, now_);
  EXPECT_EQ(members_.ClockOf(9), 0u);
}

TEST_F(MembershipTest, WhoJoinsWhileOthersWorkIsRequiredFromTheNextStep) {
  JoinBoth();
  steps_ = Membership::Steps{0, 0};
  Join(2);
  EXPECT_EQ(members_.ClockOf(2), 0u);  // rank 2 may push step 0, too
  EXPECT_EQ(Below(1), (Ranks{0, 1}));  // and step 0 does not wait for rank 2
  members_.Advance(0, 1, now_);
  members_.Advance(1, 1, now_);
  EXPECT_EQ(members_.floor(), 1u);
  EXPECT_EQ(Below(2), (Ranks{0, 1, 2}));
}

TEST_F(MembershipTest, WhoJoinsBetweenTablesIsRequiredAfterTheNewest) {
  JoinBoth();
  members_.Advance(0, 8, now_);
  members_.Advance(1, 3, now_);
  steps_ = Membership::Steps{2, 7};
  Join(2);
  EXPECT_EQ(members_.ClockOf(2), 2u);
  EXPECT_EQ(Below(8), Ranks{1});
  EXPECT_EQ(Below(9), (Ranks{0, 1, 2}));
}

TEST_F(MembershipTest, WithoutStepsAJoinerIsOneAheadOfTheSlowest) {
  JoinBoth();
  members_.Advance(0, 8, now_);
  members_.Advance(1, 3, now_);
  Join(2);
  EXPECT_EQ(members_.ClockOf(2), 3u);
  EXPECT_EQ(Below(4), Ranks{1});
  EXPECT_EQ(Below(5), (Ranks{1, 2}));
}

TEST_F(MembershipTest, WhoComesBackGoesOnWhereItsRankWas) {
  JoinBoth();
  members_.Advance(1, 6, now_);
  members_.Lost({1, 1}, &changes_);
  Join(1, 2);
  EXPECT_EQ(members_.ClockOf(1), 6u);
}

TEST_F(MembershipTest, SilenceEndsAMembershipAfterItsLease) {
  JoinBoth();
  now_ += absl::Seconds(9);
  EXPECT_EQ(members_.Check({0, 1}, now_), Standing::kMember);
  now_ += absl::Seconds(1);
  EXPECT_EQ(members_.NextDeadline(), now_);
  changes_ = {};
  Tick();
  EXPECT_EQ(changes_.departed, Ranks{1});
  EXPECT_EQ(members_.lost(), 1u);
  EXPECT_EQ(members_.StandingOf({1, 1}), Standing::kNotMember);
  EXPECT_EQ(members_.NextDeadline(), now_ + absl::Seconds(9));
}

TEST_F(MembershipTest, HeartbeatAfterTheLeaseJoinsAgain) {
  JoinBoth();
  now_ += absl::Seconds(11);
  Tick();
  EXPECT_EQ(members_.size(), 0u);
  EXPECT_EQ(Beat(0), Standing::kMember);
  EXPECT_EQ(members_.size(), 1u);
}

TEST_F(MembershipTest, HeartbeatThatComesAfterTheGoodByeDoesNotJoin) {
  JoinBoth();
  members_.Leave({0, 1}, &changes_);
  EXPECT_EQ(members_.lost(), 0u);
  EXPECT_EQ(Beat(0), Standing::kNotMember);
  EXPECT_EQ(members_.size(), 1u);
  EXPECT_EQ(Join(0), Standing::kMember);
  EXPECT_EQ(Beat(0), Standing::kMember);
}

TEST_F(MembershipTest, ClockThatIsSetBackShortensNoLease) {
  JoinBoth();
  now_ -= absl::Hours(1);
  Beat(0);
  now_ += absl::Hours(1) + absl::Seconds(5);
  Tick();
  EXPECT_EQ(members_.size(), 2u);
}

TEST_F(MembershipTest, NewIncarnationSupersedesTheOldForGood) {
  JoinBoth();
  changes_ = {};
  EXPECT_EQ(Join(1, 2), Standing::kMember);
  EXPECT_EQ(changes_.departed, Ranks{1});
  EXPECT_EQ(members_.lost(), 1u);
  EXPECT_EQ(members_.StandingOf({1, 1}), Standing::kSuperseded);
  EXPECT_EQ(Beat(1, 1), Standing::kSuperseded);
  EXPECT_EQ(Join(1, 1), Standing::kSuperseded);
  members_.Lost({1, 1}, &changes_);  // the old connection breaks late
  EXPECT_EQ(members_.size(), 2u);
  members_.Lost({1, 2}, &changes_);
  EXPECT_EQ(Join(1, 1), Standing::kSuperseded);
  EXPECT_EQ(Join(1, 2), Standing::kMember);
}

TEST_F(MembershipTest, JoinOfAMemberRenewsItsLeaseOnly) {
  JoinBoth();
  members_.Advance(1, 4, now_);
  now_ += absl::Seconds(9);
  changes_ = {};
  EXPECT_EQ(Join(1), Standing::kMember);
  EXPECT_TRUE(changes_.notes.empty());
  EXPECT_EQ(members_.ClockOf(1), 4u);
  now_ += absl::Seconds(9);
  Tick();
  EXPECT_EQ(members_.size(), 1u);
}

TEST_F(MembershipTest, RanksOutOfBoundsAreRefusedAndNotRemembered) {
  for (uint32_t rank : {kMaxRanks, std::numeric_limits<uint32_t>::max()}) {
    EXPECT_EQ(Join(rank), Standing::kInvalid);
    EXPECT_EQ(Beat(rank), Standing::kInvalid);
    EXPECT_EQ(members_.StandingOf({rank, 1}), Standing::kInvalid);
  }
  EXPECT_EQ(Join(kMaxRanks - 1), Standing::kMember);
  EXPECT_EQ(members_.Clocks().size(), 1u);
}

TEST_F(MembershipTest, DrainingRefusesEverything) {
  JoinBoth();
  members_.Drain();
  EXPECT_EQ(Join(2), Standing::kDraining);
  EXPECT_EQ(Beat(0), Standing::kDraining);
  EXPECT_EQ(members_.StandingOf({0, 1}), Standing::kDraining);
  changes_ = {};
  members_.Leave({0, 1}, &changes_);
  members_.Lost({0, 1}, &changes_);
  now_ += absl::Hours(1);
  Tick();
  EXPECT_TRUE(changes_.departed.empty());
  EXPECT_EQ(members_.state(), State::kDraining);
  EXPECT_EQ(members_.NextDeadline(), absl::InfiniteFuture());
}

TEST_F(MembershipTest, NamesTheSlowest) {
  EXPECT_FALSE(members_.Slowest().has_value());
  JoinBoth();
  now_ += absl::Seconds(3);
  members_.Advance(0, 7, now_);
  members_.Advance(1, 2, now_);
  now_ += absl::Seconds(1);
  members_.Advance(0, 9, now_);
  const auto slowest = members_.Slowest();
  ASSERT_TRUE(slowest.has_value());
  EXPECT_EQ(slowest->rank, 1u);
  EXPECT_EQ(slowest->clock, 2u);
  EXPECT_EQ(slowest->behind, 7u);
  EXPECT_EQ(slowest->since, absl::UnixEpoch() + absl::Seconds(3));
}

TEST_F(MembershipTest, CountsNoMoreThanAskedFor) {
  JoinBoth();
  Join(2);
  EXPECT_EQ(members_.CountBelow(10, 2), 2u);
  EXPECT_EQ(members_.CountBelow(10, 5), 3u);
  EXPECT_EQ(members_.CountBelow(0, 5), 0u);
  members_.Advance(0, 2, now_);
  EXPECT_EQ(members_.Below(10, 2), (Ranks{1, 2}));  // the slowest ranks
}

TEST(MembershipOptionsTest, ClocksOfACheckpointGoOn) {
  Membership::Options options = TwoWorkers();
  options.floor = 4;
  options.clocks = {{{0, 11}, 6}, {{1, 12}, 4}};
  Membership members = *Membership::Create(options);
  Membership::Changes changes;
  EXPECT_EQ(members.floor(), 4u);
  members.Join({0, 11}, absl::UnixEpoch(), absl::nullopt, &changes);
  members.Join({5, 1}, absl::UnixEpoch(), absl::nullopt, &changes);
  EXPECT_EQ(members.ClockOf(0), 6u);
  EXPECT_EQ(members.ClockOf(5), 4u);
  const std::vector<RankClock> clocks = members.Clocks();
  ASSERT_EQ(clocks.size(), 3u);
  EXPECT_EQ(clocks[1].worker.incarnation, 12u);
  EXPECT_EQ(clocks[1].clock, 4u);
  EXPECT_EQ(members.PushedClockOf(0), 6u);
  EXPECT_EQ(members.PushedClockOf(5), 0u);
  members.Advance(5, 5, absl::UnixEpoch());
  EXPECT_EQ(members.PushedClockOf(5), 5u);
  EXPECT_EQ(members.PushedClockOf(9), 0u);
}

TEST(MembershipOptionsTest, BadOptionsAreNamed) {
  auto error = [](auto change) {
    Membership::Options options = TwoWorkers();
    change(&options);
    return std::string(Membership::Create(options).status().message());
  };
  using Options = Membership::Options;
  EXPECT_NE(error([](Options* o) {
              o->expected_workers = 0;
            }).find("expected_workers"),
            std::string::npos);
  EXPECT_NE(error([](Options* o) {
              o->expected_workers = kMaxRanks + 1;
            }).find("expected_workers"),
            std::string::npos);
  EXPECT_NE(
      error([](Options* o) { o->lease = absl::ZeroDuration(); }).find("lease"),
      std::string::npos);
  EXPECT_NE(error([](Options* o) {
              o->assemble_timeout = -absl::Seconds(1);
            }).find("assemble_timeout"),
            std::string::npos);
  EXPECT_NE(error([](Options* o) { o->floor = kMaxClock + 1; }).find("floor"),
            std::string::npos);
  EXPECT_NE(error([](Options* o) {
              o->clocks = {{{kMaxRanks, 1}, 1}};
            }).find("rank 65536"),
            std::string::npos);
  EXPECT_NE(error([](Options* o) {
              o->clocks = {{{3, 1}, 1}, {{3, 2}, 1}};
            }).find("rank 3"),
            std::string::npos);
}

}  // namespace
}  // namespace penstock::ps
