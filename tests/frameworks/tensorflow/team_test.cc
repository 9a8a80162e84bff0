#include "frameworks/tensorflow/team.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

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

namespace penstock {
namespace tensorflow {
namespace {

using Formed = absl::StatusOr<std::unique_ptr<collectives::Group>>;

constexpr char kTeam[] = "group 1 of /job:worker";

// The outcome of one reduction.
struct Outcome {
  std::promise<absl::Status> ended;
  std::future<absl::Status> end = ended.get_future();
  bool is_ring = false;
  std::vector<float> values;
  // Expires when the team has finished with `values`.
  std::weak_ptr<int> memory;
};

Reduction ReductionOf(std::string key, Outcome* outcome) {
  Reduction reduction;
  reduction.key = std::move(key);
  reduction.in = outcome->values.data();
  reduction.out = outcome->values.data();
  reduction.count = static_cast<int64_t>(outcome->values.size());
  auto memory = std::make_shared<int>();
  outcome->memory = memory;
  reduction.memory = std::move(memory);
  reduction.done = [outcome](const absl::Status& status) {
    outcome->ended.set_value(status);
  };
  reduction.otherwise = [outcome] {
    outcome->is_ring = true;
    outcome->ended.set_value(absl::OkStatus());
  };
  return reduction;
}

// Joins a team as a process of its own. Reads the invitation from a pipe.
[[noreturn]] void JoinUntilKilled(int invite, int rank, int ranks) {
  char invitation[4096];
  const ssize_t size = read(invite, invitation, sizeof invitation);
  const auto group =
      AcceptInvitation(std::string(invitation, size), rank, ranks);
  if (!group.ok()) _exit(1);
  for (;;) pause();
}

// The teams of several tasks, in one process.
class TeamTest : public testing::Test {
 protected:
  void Start(int ranks) {
    for (int rank = 0; rank < ranks; ++rank) {
      teams_.push_back(*Team::Start([this, rank, ranks] {
        return rank == 0 ? meetings_.Lead(kTeam, ranks) : Join(rank, ranks);
      }));
    }
  }
  Formed Join(int rank, int ranks) {
    std::promise<absl::StatusOr<std::string>> invited;
    Joiner joiner = JoinerHere(kTeam, rank);
    if (are_elsewhere_) joiner.host = "another host";
    meetings_.Add(joiner,
                  [&invited](const absl::StatusOr<std::string>& invitation) {
                    invited.set_value(invitation);
                  });
    const auto invitation = invited.get_future().get();
    if (!invitation.ok()) return invitation.status();
    return AcceptInvitation(*invitation, rank, ranks);
  }
  ~TeamTest() override {
    // Waits for the threads, which own their teams.
    for (const auto& team : teams_) team->Abort(absl::CancelledError("end"));
    for (const auto& team : teams_) {
      while (team.use_count() > 1) absl::SleepFor(absl::Milliseconds(1));
    }
  }
  // Returns true if the reduction succeeds within ten seconds.
  static bool EndsSoon(Outcome* outcome) {
    return outcome->end.wait_for(std::chrono::seconds(10)) ==
               std::future_status::ready &&
           outcome->end.get().ok();
  }
  // Waits until the teams no longer use the values.
  static void WaitForMemory(const Outcome (&outcomes)[2]) {
    for (const Outcome& outcome : outcomes) {
      while (!outcome.memory.expired()) absl::SleepFor(absl::Microseconds(50));
    }
  }
  // Calls "key", which nobody else has called, and cancels it. Returns the
  // memory that the team may still keep.
  std::weak_ptr<int> CallAndCancel(int rank) {
    auto outcome = std::make_shared<Outcome>();
    outcome->values.assign(1000, 100);
    Reduction reduction = ReductionOf("key", outcome.get());
    const std::weak_ptr<int> memory = outcome->memory;
    reduction.done = [outcome](const absl::Status& status) {
      outcome->ended.set_value(status);
    };
    teams_[rank]->Add(std::move(reduction));
    teams_[rank]->Cancel("key");
    EXPECT_TRUE(absl::IsCancelled(outcome->end.get()));
    return memory;
  }
  void WaitWhile(const std::string& state) {
    for (const auto& team : teams_) {
      while (team->Describe().state == state) {
        absl::SleepFor(absl::Milliseconds(1));
      }
    }
  }

  TeamMeetings meetings_;
  bool are_elsewhere_ = false;
  std::vector<std::shared_ptr<Team>> teams_;
};

// Adds the reductions in a different order on each rank.
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
    for (int i = 0; i < 2; ++i) {  // while forming, and afterwards
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

// Each rank waits for its first reduction before it calls the second one.
TEST_F(TeamTest, ConflictingOrdersOfTwoThreadsDoNotBlock) {
  Start(2);
  Outcome outcomes[2][2];
  for (int rank = 0; rank < 2; ++rank) {
    for (Outcome& outcome : outcomes[rank]) outcome.values = {1};
  }
  // Rank 0 runs both at once, "b" first. Rank 1 runs "a", and then "b".
  teams_[0]->Add(ReductionOf("b", &outcomes[0][1]));
  teams_[0]->Add(ReductionOf("a", &outcomes[0][0]));
  teams_[1]->Add(ReductionOf("a", &outcomes[1][0]));
  ASSERT_TRUE(EndsSoon(&outcomes[1][0]));
  teams_[1]->Add(ReductionOf("b", &outcomes[1][1]));
  for (int rank = 0; rank < 2; ++rank) {
    for (Outcome& outcome : outcomes[rank]) {
      if (&outcome == &outcomes[1][0]) continue;  // asked above
      EXPECT_TRUE(EndsSoon(&outcome));
    }
  }
}

// The other rank waits for the key, and gets the next step's numbers.
TEST_F(TeamTest, ACancelledStepLeavesTheNextStepAlone) {
  Start(2);
  WaitWhile("forming");
  for (int rank = 0; rank < 2; ++rank) {
    for (int step = 0; step < 20; ++step) {
      const std::weak_ptr<int> memory = CallAndCancel(rank);
      Outcome outcomes[2];
      for (int i = 0; i < 2; ++i) {
        outcomes[i].values.assign(1000, 1);
        teams_[i]->Add(ReductionOf("key", &outcomes[i]));
      }
      for (Outcome& outcome : outcomes) {
        ASSERT_TRUE(EndsSoon(&outcome));
        EXPECT_EQ(outcome.values, std::vector<float>(1000, 2));
      }
      EXPECT_TRUE(memory.expired());
    }
    EXPECT_EQ(teams_[rank]->Describe().waiting, 0);
  }
}

// Cancels at random times: before, while and after the reduction runs.
TEST_F(TeamTest, RandomCancellationsNeverEndTheTeam) {
  Start(2);
  WaitWhile("forming");
  const uint32_t seed = std::random_device()();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937 random(seed);
  for (int i = 0; i < 200; ++i) {
    const std::string key = absl::StrCat("key ", i);
    Outcome outcomes[2];
    for (int rank = 0; rank < 2; ++rank) {
      outcomes[rank].values.assign(100000, 1);
      teams_[rank]->Add(ReductionOf(key, &outcomes[rank]));
    }
    absl::SleepFor(absl::Microseconds(random() % 300));
    teams_[random() % 2]->Cancel(key);
    // The rank that did not cancel may wait for the other one.
    for (const auto& team : teams_) team->Cancel(key);
    for (Outcome& outcome : outcomes) {
      const absl::Status end = outcome.end.get();
      EXPECT_TRUE(end.ok() || absl::IsCancelled(end)) << end;
    }
    WaitForMemory(outcomes);
  }
  for (const auto& team : teams_) {
    EXPECT_EQ(team->Describe().state, "reducing");
  }
}

TEST_F(TeamTest, TheEndOfARankReachesThoseThatWaitForAnother) {
  Start(3);
  WaitWhile("forming");
  Outcome waiting;
  waiting.values = {1};
  teams_[1]->Add(ReductionOf("rank 0 does not call this", &waiting));
  teams_[2]->Abort(absl::InternalError("a step has failed"));
  ASSERT_EQ(waiting.end.wait_for(std::chrono::seconds(10)),
            std::future_status::ready);
  EXPECT_FALSE(waiting.end.get().ok());
}

// A process that joins as rank 2, is stopped for a while, and is killed.
TEST_F(TeamTest, ADeathReachesThoseThatWaitForAnotherRankButAStopDoesNot) {
  int invite[2];
  ASSERT_EQ(pipe(invite), 0);
  const pid_t child = fork();  // before this process has threads
  if (child == 0) JoinUntilKilled(invite[0], 2, 3);
  meetings_.Add(JoinerHere(kTeam, 2),
                [&invite](const absl::StatusOr<std::string>& invitation) {
                  const auto size = static_cast<ssize_t>(invitation->size());
                  EXPECT_EQ(write(invite[1], invitation->data(), size), size);
                });
  teams_.push_back(*Team::Start([this] { return meetings_.Lead(kTeam, 3); }));
  teams_.push_back(*Team::Start([this] { return Join(1, 3); }));
  WaitWhile("forming");
  Outcome waiting;
  waiting.values = {1};
  teams_[1]->Add(ReductionOf("rank 0 does not call this", &waiting));
  kill(child, SIGSTOP);
  // Longer than other groups are patient.
  EXPECT_EQ(waiting.end.wait_for(std::chrono::milliseconds(2500)),
            std::future_status::timeout);
  kill(child, SIGCONT);
  for (const auto& team : teams_) {
    EXPECT_EQ(team->Describe().state, "reducing");
  }
  kill(child, SIGKILL);
  ASSERT_EQ(waiting.end.wait_for(std::chrono::seconds(10)),
            std::future_status::ready);
  EXPECT_EQ(waiting.end.get().code(), absl::StatusCode::kUnavailable);
  waitpid(child, nullptr, 0);
  for (const int fd : invite) close(fd);
}

TEST_F(TeamTest, ACancelledReductionThatRunsEndsAtOnce) {
  Start(2);
  WaitWhile("forming");
  Outcome outcomes[2];
  for (Outcome& outcome : outcomes) outcome.values.assign(4 << 20, 1);
  for (int rank = 0; rank < 2; ++rank) {
    teams_[rank]->Add(ReductionOf("key", &outcomes[rank]));
  }
  while (teams_[0]->Describe().waiting > 0) {
    absl::SleepFor(absl::Microseconds(100));
  }
  teams_[0]->Cancel("key");
  const absl::Status end = outcomes[0].end.get();
  EXPECT_TRUE(end.ok() || absl::IsCancelled(end)) << end;
  EXPECT_TRUE(EndsSoon(&outcomes[1]));
  EXPECT_EQ(outcomes[1].values[0], 2);
  WaitForMemory(outcomes);
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
