// Kills and stops ranks, and forms new groups. The ranks are processes.

#include <cstdint>
#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "tests/process/child.h"
#include "tests/ps/optim/random_values.h"

namespace penstock::collectives {
namespace {

using process::Child;

class Team {
 public:
  // With "hosts", the ranks form a HierarchicalGroup of hosts with three ranks
  // each. `timeout` limits each wait.
  Team(int ranks, const std::string& fabric,
       const std::string& timeout = "30m") {
    for (int rank = 0; rank < ranks; ++rank) {
      std::vector<std::string> command = {"tests/collectives/net/rank"};
      if (fabric == "hosts") {
        command.push_back("tcp");
        command.push_back(absl::StrCat("host", rank / 3));
      } else {
        command.push_back(fabric);
        command.push_back("");
      }
      command.push_back(timeout);
      ranks_.push_back(Child::Start(command));
      EXPECT_NE(ranks_.back(), nullptr);
    }
  }

  Child& operator[](int rank) { return *ranks_[rank]; }

  // Forms a group of these children. The position of a child is its rank.
  void Form(const std::vector<int>& members) {
    std::vector<std::string> addresses;
    for (const int member : members) {
      addresses.push_back(ranks_[member]->Find("address ").value_or(""));
    }
    for (size_t rank = 0; rank < members.size(); ++rank) {
      ranks_[members[rank]]->Tell(
          absl::StrCat(rank, " ", absl::StrJoin(addresses, "|"), "\n"));
    }
    for (const int member : members) {
      EXPECT_TRUE(ranks_[member]->Find("ready")) << "child " << member;
    }
  }

  // Returns the error of a child, without the prefix that ranks add to an error
  // of another rank.
  std::string ErrorOf(int child) {
    const std::string line = ranks_[child]->Find("error ").value_or("none");
    std::printf("child %d: %s\n", child, line.c_str());
    std::string cause = line.substr(0, line.find_first_of(",|"));
    while (!cause.empty() && cause.back() == ' ') cause.pop_back();
    return cause;
  }

 private:
  std::vector<std::unique_ptr<Child>> ranks_;
};

class Death : public testing::TestWithParam<std::string> {};

TEST_P(Death, OfAnyRankIsNamedAndTheOthersFormANewGroup) {
  std::mt19937_64 random(ps::optim::NewSeed());
  Team team(5, GetParam());
  std::vector<int> members = {0, 1, 2, 3, 4};
  while (members.size() > 1) {
    team.Form(members);
    const size_t victim = random() % members.size();
    team[members[victim]].Kill();
    members.erase(members.begin() + static_cast<int64_t>(victim));
    for (const int child : members) {
      EXPECT_EQ(team.ErrorOf(child),
                absl::StrCat("rank ", victim, " has died"));
    }
  }
}

TEST_P(Death, AStoppedRankIsNamed) {
  Team team(3, GetParam());
  team.Form({0, 1, 2});
  team[2].Suspend();
  const std::string expected =
      "rank 2 does not respond: is its process stopped?";
  EXPECT_EQ(team.ErrorOf(0), expected);
  EXPECT_EQ(team.ErrorOf(1), expected);
  // Expects that the rank, once resumed, learns that the group has ended.
  team[2].Resume();
  EXPECT_NE(team.ErrorOf(2), "none");
}

// Parts that refer to the program's memory are being sent when the operation
// fails. Sanitizers notice if a part is sent later.
TEST(DeathOverTcp, AnErrorBeforeAStopIsNoticedReleasesTheMemory) {
  Team team(2, "tcp", "300ms");
  team.Form({0, 1});
  team[1].Suspend();
  const std::string error = team.ErrorOf(0);
  EXPECT_TRUE(error == "rank 1 did not call the operation within 300ms" ||
              error == "rank 1 did not receive what was sent within 300ms")
      << error;
}

INSTANTIATE_TEST_SUITE_P(Over, Death, testing::Values("tcp", "shm", "hosts"));

}  // namespace
}  // namespace penstock::collectives
