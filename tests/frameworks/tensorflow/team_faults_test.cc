// Tests conflicting orders, cancelled steps, and ranks that end.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "frameworks/tensorflow/team.h"
#include "frameworks/tensorflow/team_meeting.h"
#include "gtest/gtest.h"
#include "tests/frameworks/tensorflow/team_fixture.h"

namespace penstock {
namespace tensorflow {
namespace {

// Joins a team, as a separate process. Reads the invitation from a pipe.
[[noreturn]] void JoinUntilKilled(int invite, int rank, int ranks) {
  char invitation[4096];
  const ssize_t size = read(invite, invitation, sizeof invitation);
  const auto group =
      AcceptInvitation(std::string(invitation, size), rank, ranks);
  if (!group.ok()) _exit(1);
  for (;;) pause();
}

// Each rank waits for its first reduction before it calls the second one.
TEST_F(TeamTest, ConflictingOrdersOfTwoThreadsDoNotBlock) {
  Start(2);
  Outcome outcomes[2][2];
  for (int rank = 0; rank < 2; ++rank) {
    for (Outcome& outcome : outcomes[rank]) outcome.values = {1};
  }
  // Rank 0 starts both reductions at once, "b" first. Rank 1 starts "a", and
  // then "b".
  teams_[0]->Add(ReductionOf("b", &outcomes[0][1]));
  teams_[0]->Add(ReductionOf("a", &outcomes[0][0]));
  teams_[1]->Add(ReductionOf("a", &outcomes[1][0]));
  ASSERT_TRUE(EndsSoon(&outcomes[1][0]));
  teams_[1]->Add(ReductionOf("b", &outcomes[1][1]));
  for (int rank = 0; rank < 2; ++rank) {
    for (Outcome& outcome : outcomes[rank]) {
      if (&outcome == &outcomes[1][0]) continue;  // checked above
      EXPECT_TRUE(EndsSoon(&outcome));
    }
  }
}

// The other rank waits for a reduction of this key, and gets the numbers of the
// next step.
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
    // Accepts that the rank which did not cancel waits for the other rank.
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
  // Longer than the timeout of other groups.
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

}  // namespace
}  // namespace tensorflow
}  // namespace penstock
