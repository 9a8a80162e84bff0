// Kills and stops ranks, and forms new groups. The ranks are processes.

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "gtest/gtest.h"
#include "tests/process/child.h"

namespace penstock::collectives {
namespace {

using process::Child;

class Team {
 public:
  // `last` is a word for the last rank; see rank_main.cc.
  explicit Team(int ranks, const std::string& last = "") {
    const std::string number = absl::StrCat(ranks);
    Start({"lead", number});
    invitation_ = ranks_[0]->Find("invitation ").value_or("");
    for (int rank = 1; rank < ranks; ++rank) {
      std::vector<std::string> command = {invitation_, absl::StrCat(rank),
                                          number};
      if (rank == ranks - 1 && !last.empty()) {
        command.insert(command.begin(), last);
      }
      Start(command);
    }
    for (const auto& rank : ranks_) EXPECT_TRUE(rank->Find("ready"));
  }

  Child& operator[](int rank) { return *ranks_[rank]; }

  // Returns the error of a rank, without the prefix that ranks add to an error
  // of another rank.
  std::string ErrorOf(int rank) {
    const std::string line = ranks_[rank]->Find("error ").value_or("none");
    std::printf("rank %d: %s\n", rank, line.c_str());
    return line.substr(0, line.find_first_of(",|"));
  }

 private:
  void Start(std::vector<std::string> command) {
    command.insert(command.begin(), "tests/collectives/host/rank");
    ranks_.push_back(Child::Start(command));
    ASSERT_NE(ranks_.back(), nullptr);
  }

  std::string invitation_;
  std::vector<std::unique_ptr<Child>> ranks_;
};

std::string Trimmed(std::string text) {
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

TEST(Death, OfARankIsNamedAndTheOthersFormANewGroup) {
  Team team(3);
  team[1].Kill();
  EXPECT_EQ(Trimmed(team.ErrorOf(0)), "rank 1 has died");
  EXPECT_EQ(Trimmed(team.ErrorOf(2)), "rank 1 has died");

  team[0].Tell("lead 2\n");
  const std::string invitation = team[0].Find("invitation ").value_or("");
  team[2].Tell(absl::StrCat(invitation, " 1 2\n"));
  EXPECT_TRUE(team[0].Find("ready"));
  EXPECT_TRUE(team[2].Find("ready"));

  // Also kills rank 0, at which the other ranks met.
  team[0].Kill();
  EXPECT_EQ(Trimmed(team.ErrorOf(2)), "rank 0 has died");
}

TEST(Death, AStoppedRankIsNamed) {
  Team team(3);
  team[2].Suspend();
  const std::string expected =
      "rank 2 does not respond: is its process stopped?";
  EXPECT_EQ(Trimmed(team.ErrorOf(0)), expected);
  EXPECT_EQ(Trimmed(team.ErrorOf(1)), expected);
}

TEST(Death, ARankWhoseThreadIsReadyToRunIsNotTakenForStopped) {
  Team team(2, "busy");
  EXPECT_TRUE(team[1].Find("on time"));
  team[1].Kill();
  EXPECT_EQ(Trimmed(team.ErrorOf(0)), "rank 1 has died");
}

TEST(Death, ARankWhoseThreadSleepsTooLongIsTakenForStopped) {
  Team team(2, "asleep");
  EXPECT_EQ(Trimmed(team.ErrorOf(0)),
            "rank 1 does not respond: is its process stopped?");
}

TEST(Death, ARankThatWakesUpLearnsThatTheGroupHasEnded) {
  Team team(2);
  team[1].Suspend();
  EXPECT_EQ(Trimmed(team.ErrorOf(0)),
            "rank 1 does not respond: is its process stopped?");
  team[1].Resume();
  EXPECT_EQ(Trimmed(team.ErrorOf(1)),
            "rank 1 does not respond: is its process stopped?");
}

}  // namespace
}  // namespace penstock::collectives
