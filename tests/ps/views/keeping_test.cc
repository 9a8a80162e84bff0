// Tests the keepers of several servers with one etcd, in this process.

#include "ps/views/keeping.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "ps/replication/view_wire.h"
#include "tests/ps/views/nodes.h"

namespace penstock::ps::views {
namespace {

using replication::ReplicaId;
using replication::View;
using testing::Contains;
using testing::HasSubstr;

using KeepingTest = NodesTest;

TEST_F(KeepingTest, TheFirstViewWaitsForTheRunAndBecomesComplete) {
  nodes_[1]->replicas.SetRun(kRun);
  absl::SleepFor(absl::Milliseconds(100));
  EXPECT_EQ(nodes_[0]->replicas.view().number, 0u);
  Begin();
  EXPECT_EQ(PrimariesOf(nodes_[2]->replicas.view()), kAllAtHome);
  EXPECT_EQ(nodes_[2]->known().servers, kAllAtHome);
  EXPECT_THAT(nodes_[2]->log(), HasSubstr("shard 0 at ps0:1, backup ps1:1"));
}

TEST_F(KeepingTest, AServerThatIsGoneIsReplacedAndReturnsAsABackup) {
  Begin();
  nodes_[1] = nullptr;  // deletes its key, like the end of its lease
  ASSERT_TRUE(Await([](const View& view) {
    return PrimariesOf(view) ==
               std::vector<std::string>({"ps0:1", "ps2:1", "ps2:1"}) &&
           IsComplete(view);
  })) << nodes_[0]->log();
  EXPECT_EQ(nodes_[0]->known().servers, kAllAtHome);
  Start(1, 901);
  nodes_[0]->replicas.Complain(nodes_[2]->replicas.self());
  ASSERT_TRUE(Await([](const View& view) {
    return IsComplete(view) &&
           view.shards[0].backups[0] == ReplicaId{"ps1:1", 901};
  })) << nodes_[0]->log();
}

TEST_F(KeepingTest, AServerThatWasRegisteredIsDeadOnceItIsGone) {
  for (int i = 0; i < 3; ++i) {
    nodes_[static_cast<size_t>(i)] = nullptr;
    Start(i, 200 + static_cast<uint64_t>(i), /*backups=*/1, absl::Hours(1));
  }
  Begin();
  nodes_[1] = nullptr;
  EXPECT_TRUE(Await([](const View& view) {
    return PrimariesOf(view) ==
           std::vector<std::string>({"ps0:1", "ps2:1", "ps2:1"});
  })) << nodes_[0]->log();
}

TEST_F(KeepingTest, NobodyIsDroppedIfEtcdHasEndedAllLeases) {
  Begin();
  const View before = nodes_[0]->replicas.view();
  etcd_.ExpireLeases();
  absl::SleepFor(absl::Milliseconds(600));
  EXPECT_EQ(nodes_[0]->replicas.view(), before) << nodes_[0]->log();
  // Kills another server. The keepers must notice later deaths, too.
  nodes_[2] = nullptr;
  EXPECT_TRUE(Await([](const View& view) {
    return PrimariesOf(view) ==
           std::vector<std::string>({"ps0:1", "ps1:1", "ps0:1"});
  })) << nodes_[0]->log();
}

TEST_F(KeepingTest, AProposerFollowsTheViewBeforeEtcdAnswers) {
  Begin();
  etcd_.DelayAnswersOfWrites(absl::Seconds(5));
  const absl::Time begin = base::SteadyNow();
  nodes_[0]->replicas.Complain(nodes_[1]->replicas.self());
  ASSERT_TRUE(Await([&](const View& view) {
    return view.shards[0].backups.empty() ||
           view.shards[0].backups[0].server != "ps1:1";
  })) << nodes_[0]->log();
  EXPECT_LT(base::SteadyNow() - begin, absl::Seconds(4));
  etcd_.DelayAnswersOfWrites(absl::ZeroDuration());
}

TEST_F(KeepingTest, ViewsFreezeWhileEtcdIsAway) {
  Begin();
  const View before = nodes_[0]->replicas.view();
  etcd_.SetAway(true);
  nodes_[0]->replicas.Complain(nodes_[1]->replicas.self());
  absl::SleepFor(absl::Milliseconds(400));
  EXPECT_EQ(nodes_[0]->replicas.view(), before);
  etcd_.SetAway(false);
  EXPECT_TRUE(Await([&](const View& view) {
    return IsComplete(view) && view.shards[0].backups[0].server == "ps2:1";
  })) << nodes_[0]->log();
}

TEST_F(KeepingTest, AViewThatGoesBackIsNotTaken) {
  Begin();
  const View before = nodes_[0]->replicas.view();
  membership::v1::View old;
  old.set_number(1);
  View first = *replication::FirstView(
      kRun, {before.shards[0].primary, before.shards[1].primary}, 0);
  old.set_decision(replication::ToBytes(first));
  old.add_servers("ps0:1");
  old.add_servers("ps1:1");
  etcd_.Put("t/view", old.SerializeAsString());
  const absl::Time limit = base::SteadyNow() + kTimeout;
  while (nodes_[0]->log().find("restored from a backup") == std::string::npos) {
    ASSERT_LT(base::SteadyNow(), limit) << nodes_[0]->log();
    absl::SleepFor(absl::Milliseconds(10));
  }
  EXPECT_EQ(nodes_[0]->replicas.view(), before);
  etcd_.Put("t/view", "nonsense");
  while (nodes_[0]->log().find("is no view") == std::string::npos) {
    ASSERT_LT(base::SteadyNow(), limit) << nodes_[0]->log();
    absl::SleepFor(absl::Milliseconds(10));
  }
}

TEST_F(KeepingTest, AWipedEtcdIsReported) {
  Begin();
  EXPECT_EQ(nodes_[0]->known().etcd_failure, "");
  etcd_.LieOfRevision(1);
  const absl::Time limit = base::SteadyNow() + kTimeout;
  while (nodes_[0]->known().etcd_failure.empty()) {
    ASSERT_LT(base::SteadyNow(), limit) << nodes_[0]->log();
    absl::SleepFor(absl::Milliseconds(10));
  }
  EXPECT_THAT(nodes_[0]->known().etcd_failure, HasSubstr("etcd was wiped"));
  EXPECT_NE(nodes_[0]->known().view, absl::nullopt);
}

TEST_F(KeepingTest, AViewThatIsRefusedComesAgain) {
  nodes_[2]->replicas.Refuse(3);
  Begin();
  EXPECT_THAT(nodes_[2]->log(), HasSubstr("not yet"));
}

TEST_F(KeepingTest, AShardWithoutReplicasIsNamed) {
  nodes_[0]->replicas.SetCompletes(false);
  nodes_[0]->replicas.SetRun(kRun);
  ASSERT_TRUE(Await([](const View& view) {
    return view.number > 1 && view.shards[0].backups.empty();
  }));
  nodes_[0] = nullptr;
  const absl::Time limit = base::SteadyNow() + kTimeout;
  while (nodes_[1]->known().lost.empty()) {
    ASSERT_LT(base::SteadyNow(), limit) << nodes_[1]->log();
    absl::SleepFor(absl::Milliseconds(10));
  }
  EXPECT_THAT(nodes_[1]->known().lost, Contains(0u));
  EXPECT_THAT(nodes_[1]->log(), HasSubstr("restart all servers"));
}

TEST_F(KeepingTest, ErrorsInTurnAreLoggedOnce) {
  Begin();
  Start(3, 103);
  nodes_[1] = nullptr;
  nodes_[2] = nullptr;
  const absl::Time limit = base::SteadyNow() + kTimeout;
  while (nodes_[0]->known().lost.empty()) {
    ASSERT_LT(base::SteadyNow(), limit) << nodes_[0]->log();
    absl::SleepFor(absl::Milliseconds(10));
  }
  // Runs many rounds of a keeper. Each round finds a stranger and a lost shard.
  absl::SleepFor(absl::Milliseconds(300));
  const std::vector<std::string> lines = absl::StrSplit(nodes_[0]->log(), '\n');
  EXPECT_EQ(std::set<std::string>(lines.begin(), lines.end()).size(),
            lines.size())
      << nodes_[0]->log();
}

}  // namespace
}  // namespace penstock::ps::views
