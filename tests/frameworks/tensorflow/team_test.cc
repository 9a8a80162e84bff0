#include "frameworks/tensorflow/team.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "frameworks/tensorflow/called_reductions.h"
#include "frameworks/tensorflow/team_line.h"
#include "frameworks/tensorflow/team_meeting.h"
#include "gtest/gtest.h"
#include "tests/frameworks/tensorflow/team_fixture.h"

namespace penstock {
namespace tensorflow {
namespace {

TEST_F(TeamTest, ReducesInAnyOrderOfTheCalls) {
  constexpr int kRanks = 3;
  constexpr int kReductions = 40;
  const uint32_t seed = std::random_device()();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  Start(kRanks);
  std::vector<std::vector<Outcome>> outcomes(kRanks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank) {
    outcomes[rank] = std::vector<Outcome>(kReductions);
    threads.emplace_back([&, rank] {
      std::mt19937 random(seed + rank);
      std::vector<int> order(kReductions);
      for (int i = 0; i < kReductions; ++i) order[i] = i;
      std::shuffle(order.begin(), order.end(), random);
      for (const int i : order) {
        Outcome& outcome = outcomes[rank][i];
        outcome.values.assign(1 + i * 1000, static_cast<float>(i + rank));
        teams_[rank]->Add(ReductionOf(absl::StrCat("key ", i), &outcome));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int rank = 0; rank < kRanks; ++rank) {
    for (int i = 0; i < kReductions; ++i) {
      Outcome& outcome = outcomes[rank][i];
      ASSERT_TRUE(outcome.end.get().ok());
      EXPECT_FALSE(outcome.is_ring);
      const auto sum = static_cast<float>(3 * i + 3);
      EXPECT_EQ(outcome.values, std::vector<float>(1 + i * 1000, sum));
    }
    EXPECT_EQ(teams_[rank]->Describe().reductions, kReductions);
  }
}

TEST_F(TeamTest, AllRanksUseTheRingIfOneIsElsewhere) {
  are_elsewhere_ = true;
  Start(2);
  for (const auto& team : teams_) {
    for (int i = 0; i < 2; ++i) {  // during the formation, and afterwards
      Outcome outcome;
      outcome.values = {1};
      team->Add(ReductionOf("key", &outcome));
      ASSERT_TRUE(outcome.end.get().ok());
      EXPECT_TRUE(outcome.is_ring);
    }
    EXPECT_EQ(team->Describe().reason, "rank 1 is on another host than rank 0");
  }
}

TEST_F(TeamTest, AllRanksUseTheRingIfOneHasNoDataPlane) {
  teams_.push_back(*Team::Start([this] { return meetings_.Lead(kTeam, 3); }));
  teams_.push_back(*Team::Start([this] { return Join(1, 3); }));
  Outcome outcomes[2];
  teams_[0]->Add(ReductionOf("key", &outcomes[0]));
  teams_[1]->Add(ReductionOf("key", &outcomes[1]));
  meetings_.Refuse(kTeam, absl::FailedPreconditionError("rank 2 has none"));
  for (Outcome& outcome : outcomes) {
    ASSERT_TRUE(outcome.end.get().ok());
    EXPECT_TRUE(outcome.is_ring);
  }
  EXPECT_EQ(teams_[1]->Describe().reason, "rank 2 has none");
}

TEST_F(TeamTest, AnAbortEndsAllRanks) {
  Start(2);
  Outcome mine;
  mine.values = {1};
  teams_[0]->Add(ReductionOf("key", &mine));
  WaitWhile("forming");
  teams_[1]->Abort(absl::InternalError("a step has failed"));
  EXPECT_EQ(mine.end.get().code(), absl::StatusCode::kCancelled);
  for (const auto& team : teams_) {
    while (team->Describe().state != "ended") {
      absl::SleepFor(absl::Milliseconds(1));
    }
    Outcome late;
    late.values = {1};
    team->Add(ReductionOf("key", &late));
    EXPECT_FALSE(late.end.get().ok());
    EXPECT_FALSE(late.is_ring);
  }
  EXPECT_EQ(teams_[1]->Describe().reason, "a step has failed");
}

TEST_F(TeamTest, ACancelledReductionThatWaitsLeavesTheTeamAlone) {
  Start(2);
  Outcome cancelled;
  cancelled.values = {1};
  teams_[1]->Add(ReductionOf("waits", &cancelled));
  teams_[1]->Cancel("waits");
  teams_[1]->Cancel("unknown");
  EXPECT_EQ(cancelled.end.get().code(), absl::StatusCode::kCancelled);
  Outcome outcomes[2];
  for (int rank = 0; rank < 2; ++rank) {
    outcomes[rank].values = {1};
    teams_[rank]->Add(ReductionOf("key", &outcomes[rank]));
  }
  for (Outcome& outcome : outcomes) {
    ASSERT_TRUE(outcome.end.get().ok());
    EXPECT_EQ(outcome.values, std::vector<float>{2});
  }
}

TEST_F(TeamTest, AnAbortEndsATeamThatForms) {
  std::promise<void> formed;
  teams_.push_back(*Team::Start([&formed]() -> Formed {
    formed.get_future().wait();
    return absl::FailedPreconditionError("too late");
  }));
  Outcome outcome;
  teams_[0]->Add(ReductionOf("key", &outcome));
  teams_[0]->Abort(absl::InternalError("a step has failed"));
  EXPECT_EQ(outcome.end.get().code(), absl::StatusCode::kInternal);
  EXPECT_FALSE(outcome.is_ring);
  EXPECT_EQ(teams_[0]->Describe().state, "ended");
  formed.set_value();
  while (teams_[0].use_count() > 1) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_EQ(teams_[0]->Describe().reason, "a step has failed");
}

TEST_F(TeamTest, AGroupThatIsFormedAfterAnAbortEndsForAll) {
  std::promise<void> formed;
  teams_.push_back(*Team::Start([this, &formed] {
    Formed group = meetings_.Lead(kTeam, 2);
    formed.get_future().wait();
    return group;
  }));
  teams_.push_back(*Team::Start([this] { return Join(1, 2); }));
  teams_[0]->Abort(absl::InternalError("a step has failed"));
  Outcome outcome;
  outcome.values = {1};
  teams_[1]->Add(ReductionOf("key", &outcome));
  formed.set_value();
  EXPECT_EQ(outcome.end.get().code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(outcome.is_ring);
}

TEST_F(TeamTest, ACancellationBeforeAddIsNotLost) {
  Start(1);
  Outcome outcome;
  outcome.values = {1};
  Reduction reduction = ReductionOf("key", &outcome);
  reduction.cancelled = std::make_shared<std::atomic<bool>>(true);
  teams_[0]->Cancel("key");
  teams_[0]->Add(std::move(reduction));
  EXPECT_EQ(outcome.end.get().code(), absl::StatusCode::kCancelled);
}

TEST_F(TeamTest, KeysHaveALimit) {
  Start(1);
  for (const size_t size : {size_t{0}, TeamLine::kMaxKeyBytes + 1}) {
    Outcome outcome;
    teams_[0]->Add(ReductionOf(std::string(size, 'k'), &outcome));
    EXPECT_EQ(outcome.end.get().code(), absl::StatusCode::kInvalidArgument);
  }
  Outcome outcome;
  outcome.values = {1};
  teams_[0]->Add(
      ReductionOf(std::string(TeamLine::kMaxKeyBytes, 'k'), &outcome));
  EXPECT_TRUE(outcome.end.get().ok());
}

TEST(CalledReductions, ARankMayCallAKeyAgain) {
  CalledReductions called(2);
  called.Add(0, "key");
  called.Add(0, "key");
  EXPECT_FALSE(called.Take("key"));
  called.Add(1, "key");
  EXPECT_TRUE(called.Take("key"));
  EXPECT_FALSE(called.Take("key"));
  EXPECT_FALSE(called.Take("other"));
  called.Add(1, "key");
  EXPECT_TRUE(called.Take("key"));
}

TEST(CalledReductions, ACallThatIsTakenAndGivenUpCountsOnce) {
  CalledReductions called(2);
  for (int rank = 0; rank < 2; ++rank) called.Add(rank, "key");
  ASSERT_TRUE(called.Take("key"));
  called.Remove(1, "key");
  called.PutBack("key");
  EXPECT_FALSE(called.Take("key"));
  called.Add(1, "key");
  EXPECT_TRUE(called.Take("key"));
}

TEST(TeamLine, DecodesWhatIsEncoded) {
  TeamLine line;
  line.kind = TeamLine::Kind::kReduce;
  line.key = std::string(TeamLine::kMaxKeyBytes, 'k');
  TeamLineBytes bytes = Encode(line);
  const auto decoded = DecodeTeamLine(bytes);
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(decoded->kind, line.kind);
  EXPECT_EQ(decoded->key, line.key);
  bytes[1] = TeamLine::kMaxKeyBytes + 1;
  EXPECT_FALSE(DecodeTeamLine(bytes).ok());
  bytes[1] = 1;
  for (const uint8_t kind : {0, 4, 255}) {
    bytes[0] = kind;
    EXPECT_FALSE(DecodeTeamLine(bytes).ok());
  }
}

TEST(TeamMeetings, ReadsWhatJoinersWrite) {
  const auto joiner = ParseJoiner(ToText({"group 1\nof", 7, "host/1/2"}));
  ASSERT_TRUE(joiner.ok());
  EXPECT_EQ(joiner->team, "group 1\nof");
  EXPECT_EQ(joiner->rank, 7);
  EXPECT_EQ(joiner->host, "host/1/2");
  for (const char* text : {"", "team1\n1\nhost", "team2\n1\nhost\nteam",
                           "team1\none\nhost\nteam", "team1\n0\nhost\nteam",
                           "team1\n-1\nhost\nteam", "team1\n64\nhost\nteam"}) {
    EXPECT_FALSE(ParseJoiner(text).ok()) << text;
  }
}

TEST(TeamMeetings, RanksThatComeTwiceOrTooLateAreRefused) {
  TeamMeetings meetings;
  std::vector<std::string> answers;
  const auto note = [&answers](const absl::StatusOr<std::string>& invitation) {
    answers.push_back(std::string(invitation.status().message()));
  };
  meetings.Add({"team", 1, "host"}, note);
  meetings.Add({"team", 1, "host"}, note);
  EXPECT_EQ(answers, std::vector<std::string>{"rank 1 has come twice"});
  meetings.Refuse("team", absl::FailedPreconditionError("no"));
  EXPECT_FALSE(meetings.Lead("team", 3).ok());
  meetings.Add({"team", 2, "host"}, note);
  EXPECT_EQ(answers,
            (std::vector<std::string>{"rank 1 has come twice", "no", "no"}));
}

TEST(TeamMeetings, RanksOutsideOfTheTeamAreRefused) {
  TeamMeetings meetings;
  std::string answer;
  meetings.Add({"team", 1, "host"},
               [&answer](const absl::StatusOr<std::string>& invitation) {
                 answer = std::string(invitation.status().message());
               });
  EXPECT_TRUE(meetings.Lead("team", 1).ok());
  EXPECT_EQ(answer, "rank 1 of a team with 1 ranks");
}

}  // namespace
}  // namespace tensorflow
}  // namespace penstock
