// Tests the commands that move shards, with keepers and one etcd, in this
// process.

#include "ps/views/moving.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "ps/membership/members.h"
#include "ps/membership/moves.h"
#include "ps/replication/replica_list.h"
#include "tests/ps/views/moving_fixture.h"

namespace penstock::ps::views {
namespace {

using replication::PartsOf;
using replication::View;
using testing::HasSubstr;

TEST_F(MovingTest, ADrainedServerHoldsNothingUntilItIsAddedAgain) {
  Begin();
  const absl::Status drained = DrainServer(options_, "ps1");
  ASSERT_TRUE(drained.ok()) << drained;
  EXPECT_THAT(said(), HasSubstr("shard 1 at ps2:1"));
  ASSERT_TRUE(Await([&](const View& view) {
    return IsComplete(view) && PartsOf(view, nodes_[1]->replicas.self()) == 0;
  })) << nodes_[0]->log();
  // Expects that rebalancing changes nothing, and says so.
  said_.clear();
  ASSERT_TRUE(Rebalance(options_).ok());
  EXPECT_THAT(said(), HasSubstr("its own server, ps1:1, is gone or leaves"));
  EXPECT_EQ(PartsOfServer(1), 0u);
  const absl::Status added = AddServer(options_, "ps1:1", "");
  ASSERT_TRUE(added.ok()) << added;
  ASSERT_TRUE(Rebalance(options_).ok());
  EXPECT_TRUE(Await([](const View& view) {
    return PrimariesOf(view) == kAllAtHome && IsComplete(view);
  })) << nodes_[0]->log();
}

TEST_F(MovingTest, ATrainingDoesNotBeginWithADrainedServer) {
  const absl::Status drained = DrainServer(options_, "ps1");
  ASSERT_TRUE(drained.ok()) << drained;
  for (const auto& node : nodes_) node->replicas.SetRun(kRun);
  const absl::Time limit = base::SteadyNow() + kTimeout;
  while (nodes_[0]->log().empty() && base::SteadyNow() < limit) {
    absl::SleepFor(absl::Milliseconds(10));
  }
  EXPECT_THAT(nodes_[0]->log(), HasSubstr("penstock ps add"));
  EXPECT_EQ(nodes_[0]->replicas.view().number, 0u);
  const absl::Status added = AddServer(options_, "ps1", "");
  ASSERT_TRUE(added.ok()) << added;
  EXPECT_TRUE(Await([](const View& view) {
    return PrimariesOf(view) == kAllAtHome && IsComplete(view);
  })) << nodes_[0]->log();
}

// The first view is being written to etcd while the server is marked.
TEST_F(MovingTest, ADrainOutrunsAFirstViewThatDoesNotKnowOfIt) {
  etcd_.HoldWritesOf("t/view");
  for (const auto& node : nodes_) node->replicas.SetRun(kRun);
  etcd_.AwaitHeldWrite();
  const absl::Status drained = DrainServer(options_, "ps1");
  ASSERT_TRUE(drained.ok()) << drained;
  etcd_.HoldWritesOf("");
  const absl::Time limit = base::SteadyNow() + kTimeout;
  while (nodes_[0]->log().empty() && base::SteadyNow() < limit) {
    absl::SleepFor(absl::Milliseconds(10));
  }
  EXPECT_THAT(nodes_[0]->log(), HasSubstr("drained ps1:1"));
  EXPECT_EQ(nodes_[0]->replicas.view().number, 0u) << nodes_[0]->log();
}

TEST_F(MovingTest, RebalanceAfterAFailover) {
  Begin();
  nodes_[1] = nullptr;
  ASSERT_TRUE(Await([](const View& view) {
    return PrimariesOf(view)[1] == "ps2:1" && IsComplete(view);
  }));
  Start(1, 901);
  nodes_[1]->replicas.SetRun(kRun);
  const absl::Status balanced = Rebalance(options_);
  ASSERT_TRUE(balanced.ok()) << balanced << "\n" << said();
  EXPECT_TRUE(Await([](const View& view) {
    return PrimariesOf(view) == kAllAtHome && IsComplete(view);
  })) << nodes_[0]->log();
}

TEST_F(MovingTest, ANewServerTakesThePlaceOfOneThatIsGone) {
  Begin();
  Start(3, 103);
  EXPECT_THAT(AddServer(options_, "ps3", "").ToString(),
              HasSubstr("no server is gone"));
  // Kills a server. The other servers must back each other up while there is a
  // spare one.
  nodes_[1] = nullptr;
  ASSERT_TRUE(Await([](const View& view) {
    return PrimariesOf(view)[1] == "ps2:1" && IsComplete(view);
  })) << nodes_[0]->log();
  EXPECT_THAT(nodes_[0]->log(), HasSubstr("by penstock ps add"));
  EXPECT_THAT(AddServer(options_, "ps3", "ps0:1").ToString(),
              HasSubstr("drain and stop it first; gone are: ps1:1"));
  const absl::Status added = AddServer(options_, "ps3", "");
  ASSERT_TRUE(added.ok()) << added;
  ASSERT_TRUE(Rebalance(options_).ok());
  EXPECT_TRUE(Await([](const View& view) {
    return PrimariesOf(view) ==
               std::vector<std::string>({"ps0:1", "ps3:1", "ps2:1"}) &&
           IsComplete(view);
  })) << nodes_[0]->log();
  // Expects that workers find the servers of the view.
  const auto found = member_->AwaitServers(kTimeout, nullptr);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(*found, std::vector<std::string>({"ps0:1", "ps3:1", "ps2:1"}));
}

TEST_F(MovingTest, ANewServerWithOtherFlagsTakesNoPlace) {
  Begin();
  Start(3, 103, /*backups=*/2);
  nodes_[1] = nullptr;
  ASSERT_TRUE(Await([](const View& view) {
    return PrimariesOf(view)[1] == "ps2:1" && IsComplete(view);
  })) << nodes_[0]->log();
  EXPECT_THAT(AddServer(options_, "ps3", "").ToString(), HasSubstr("replicas"));
  // Later views are still made.
  Start(1, 111);
  EXPECT_TRUE(Rebalance(options_).ok());
}

TEST_F(MovingTest, WrongRequestsNameTheRemedy) {
  EXPECT_THAT(Rebalance(options_).ToString(), HasSubstr("no shards yet"));
  EXPECT_TRUE(DrainServer(options_, "ps1").ok());  // ps1 holds nothing yet
  EXPECT_TRUE(AddServer(options_, "ps1", "").ok());
  Begin();
  EXPECT_THAT(DrainServer(options_, "ps7").ToString(),
              HasSubstr("ps0 (ps0:1), ps1 (ps1:1), ps2 (ps2:1)"));
  {
    const auto claim = membership::ClaimMove(member_->registry(),
                                             membership::v1::Move::REBALANCE);
    ASSERT_TRUE(claim.ok()) << claim.status();
    EXPECT_THAT(DrainServer(options_, "ps1").ToString(),
                HasSubstr("a rebalance by process "));
  }
  EXPECT_THAT(AddServer(options_, "ps1", "nonsense").ToString(),
              HasSubstr("ps1 (ps1:1) takes part already, and nonsense does "
                        "not: add the server without"));
  EXPECT_THAT(AddServer(options_, "ps1", "ps0:1").ToString(),
              HasSubstr("and so does ps0:1: it cannot take both places"));
  EXPECT_TRUE(AddServer(options_, "ps1", "ps1:1").ok());
  ASSERT_TRUE(DrainServer(options_, "ps1").ok());
  EXPECT_THAT(DrainServer(options_, "ps2").ToString(),
              HasSubstr("1 server would be left for the 2 copies"));
  etcd_.SetAway(true);
  const absl::Time begin = base::SteadyNow();
  EXPECT_FALSE(Rebalance(options_).ok());
  EXPECT_LT(base::SteadyNow() - begin, absl::Seconds(15));
}

TEST_F(MovingTest, AMoveThatDoesNotEndIsTakenBack) {
  Begin();
  for (const auto& node : nodes_) node->replicas.SetCompletes(false);
  options_.timeout = absl::Seconds(1);
  EXPECT_THAT(DrainServer(options_, "ps1").ToString(),
              HasSubstr("shard 0: ps2:1 catches up"));
  options_.timeout = kTimeout;
  options_.interrupted = [] { return true; };
  EXPECT_TRUE(absl::IsCancelled(DrainServer(options_, "ps1")));
  for (const auto& node : nodes_) node->replicas.SetCompletes(true);
  // Waits until the superfluous copy is removed.
  EXPECT_TRUE(Await([](const View& view) {
    return PrimariesOf(view) == kAllAtHome && IsComplete(view);
  })) << nodes_[0]->log();
  EXPECT_EQ(PartsOfServer(1), 2u);
}

TEST_F(MovingTest, AServerThatEndsInMidDrainIsReplaced) {
  Begin();
  for (const auto& node : nodes_) node->replicas.SetCompletes(false);
  std::thread killer = OnceOneJoins([this] { nodes_[1] = nullptr; });
  EXPECT_TRUE(DrainServer(options_, "ps1").ok());
  killer.join();
  nodes_[0]->replicas.SetCompletes(true);
  nodes_[2]->replicas.SetCompletes(true);
  EXPECT_TRUE(Await([](const View& view) {
    return PrimariesOf(view)[1] == "ps2:1" && IsComplete(view);
  })) << nodes_[0]->log();
}

TEST_F(MovingTest, ADrainWaitsWhileTooFewOtherServersLive) {
  Begin();
  for (const auto& node : nodes_) node->replicas.SetCompletes(false);
  std::thread killer = OnceOneJoins([this] {
    nodes_[2] = nullptr;
    absl::SleepFor(3 * options_.gone_after);
    Start(2, 902);
    for (const auto& node : nodes_) node->replicas.SetCompletes(true);
  });
  const absl::Status drained = DrainServer(options_, "ps1");
  killer.join();
  ASSERT_TRUE(drained.ok()) << drained << "\n" << said();
  EXPECT_TRUE(Await([&](const View& view) {
    return IsComplete(view) && PartsOf(view, nodes_[1]->replicas.self()) == 0;
  })) << nodes_[0]->log();
}

TEST_F(MovingTest, ADrainNamesTheLastCopy) {
  Begin();
  for (const auto& node : nodes_) node->replicas.SetCompletes(false);
  options_.timeout = absl::Seconds(2);
  std::thread killer = OnceOneJoins([this] { nodes_[2] = nullptr; });
  const absl::Status drained = DrainServer(options_, "ps1");
  killer.join();
  EXPECT_TRUE(absl::IsDeadlineExceeded(drained)) << drained;
  EXPECT_THAT(drained.ToString(),
              HasSubstr("ps1 (ps1:1) has the last copy of shard 1: do not"));
  // Expects that a second attempt is refused immediately, and that the error
  // says so.
  EXPECT_THAT(DrainServer(options_, "ps1").ToString(),
              HasSubstr("ps1 (ps1:1) has the last copy of shard 1: do not"));
}

TEST_F(MovingTest, ADrainEndsIfItsServerDiesWithALastCopy) {
  Begin();
  for (const auto& node : nodes_) node->replicas.SetCompletes(false);
  std::thread killer = OnceOneJoins([this] {
    nodes_[2] = nullptr;
    EXPECT_TRUE(
        Await([](const View& view) { return view.shards[1].backups.empty(); }));
    nodes_[1] = nullptr;
  });
  const absl::Status drained = DrainServer(options_, "ps1");
  killer.join();
  EXPECT_TRUE(absl::IsAborted(drained)) << drained;
  EXPECT_THAT(drained.ToString(), HasSubstr("ps1 (ps1:1) has ended"));
}

// Kills another server while a replica joins. Ends the drain once it has said
// what is missing.
TEST_F(MovingTest, ADrainSaysWhatItWaitsFor) {
  Begin();
  for (const auto& node : nodes_) node->replicas.SetCompletes(false);
  options_.quiet = absl::ZeroDuration();
  options_.interrupted = [this] {
    return absl::StrContains(said(), "it waits for this: shard ") &&
           absl::StrContains(said(), " 1 of 2 copies, and needs another");
  };
  std::thread killer = OnceOneJoins([this] {
    nodes_[2] = nullptr;
    for (int i : {0, 1}) nodes_[i]->replicas.SetCompletes(true);
  });
  const absl::Status drained = DrainServer(options_, "ps1");
  killer.join();
  EXPECT_TRUE(absl::IsCancelled(drained)) << drained << "\n" << said();
}

// Tests a drain whose command was killed. The mark of a drain ends with the
// lease of its command.
TEST_F(MovingTest, ADrainGoesOnAfterEtcdHasEndedAllLeases) {
  Begin();
  for (const auto& node : nodes_) node->replicas.SetCompletes(false);
  std::thread other = OnceOneJoins([this] {
    etcd_.ExpireLeases();
    absl::SleepFor(absl::Seconds(1));
    for (const auto& node : nodes_) node->replicas.SetCompletes(true);
  });
  const absl::Status drained = DrainServer(options_, "ps1");
  other.join();
  EXPECT_TRUE(drained.ok()) << drained;
}

TEST_F(MovingTest, ASpareIsNoServerThatCouldTakeShards) {
  Begin();
  Start(3, 103);
  nodes_[2] = nullptr;
  ASSERT_TRUE(Await([](const View& view) {
    return PrimariesOf(view)[2] != "ps2:1" && IsComplete(view);
  })) << nodes_[0]->log();
  EXPECT_THAT(DrainServer(options_, "ps1").ToString(),
              HasSubstr("1 server would be left"));
}

TEST_F(MovingTest, RebalanceEndsOnceAllShardsAreThere) {
  Begin();
  nodes_[1] = nullptr;
  ASSERT_TRUE(Await([](const View& view) {
    return PrimariesOf(view)[1] == "ps2:1" && IsComplete(view);
  }));
  Start(1, 901);
  for (const auto& node : nodes_) node->replicas.SetRun(kRun);
  for (const auto& node : nodes_) node->replicas.SetCompletes(false);
  std::thread other = OnceOneJoins([this] {
    absl::SleepFor(absl::Seconds(2));
    for (const auto& node : nodes_) node->replicas.SetCompletes(true);
  });
  const absl::Status balanced = Rebalance(options_);
  EXPECT_TRUE(balanced.ok()) << balanced;
  EXPECT_EQ(PrimariesOf(nodes_[0]->replicas.view()), kAllAtHome);
  other.join();
}

TEST_F(MovingTest, AServerThatEtcdForgotForAMomentKeepsItsPlace) {
  Begin();
  Start(3, 103);
  options_.gone_after = absl::Seconds(3);
  nodes_[1] = nullptr;
  std::thread starter([this] {
    absl::SleepFor(absl::Milliseconds(300));
    Start(1, 101);
    nodes_[1]->replicas.SetRun(kRun);
  });
  EXPECT_THAT(AddServer(options_, "ps3", "").ToString(),
              HasSubstr("no server is gone"));
  starter.join();
  EXPECT_EQ(nodes_[0]->known().servers, kAllAtHome);
}

TEST_F(MovingTest, NobodyGetsThePlaceOfAServerWithALastCopy) {
  Begin();
  Start(3, 103);
  for (const auto& node : nodes_) node->replicas.SetCompletes(false);
  nodes_[2] = nullptr;
  ASSERT_TRUE(Await([](const View& view) {
    return view.shards[1].backups.empty() && view.shards[2].backups.empty();
  })) << nodes_[0]->log();
  nodes_[1] = nullptr;
  EXPECT_THAT(AddServer(options_, "ps3", "ps1:1").ToString(),
              HasSubstr("ps1:1 has the last copy of shard 1"));
}

TEST_F(MovingTest, ADrainedServerStaysDrainedWhenItRegistersAnew) {
  Begin();
  ASSERT_TRUE(DrainServer(options_, "ps1").ok());
  etcd_.ExpireLeases();
  absl::SleepFor(absl::Seconds(1));  // longer than the nodes' `settle`
  // Kills another server. The drained server must still get no shard.
  nodes_[2] = nullptr;
  ASSERT_TRUE(Await([](const View& view) {
    return view.shards[0].backups.empty();
  })) << nodes_[0]->log();
  absl::SleepFor(absl::Milliseconds(300));
  EXPECT_EQ(PartsOfServer(1), 0u) << nodes_[0]->log();
}

TEST_F(MovingTest, AKilledDrainLeavesNoMark) {
  Begin();
  for (const auto& node : nodes_) node->replicas.SetCompletes(false);
  options_.timeout = absl::Seconds(3);
  etcd::EtcdState in_mid_drain;
  std::thread watcher = OnceOneJoins([&] { in_mid_drain = etcd_.Save(); });
  EXPECT_TRUE(absl::IsDeadlineExceeded(DrainServer(options_, "ps1")));
  watcher.join();
  // The mark ends with the lease of the command, like after kill -9.
  const auto mark = in_mid_drain.values.find("t/leaving/ps1");
  const auto move = in_mid_drain.values.find("t/move");
  ASSERT_NE(mark, in_mid_drain.values.end());
  ASSERT_NE(move, in_mid_drain.values.end());
  EXPECT_NE(mark->second.lease(), 0);
  EXPECT_EQ(mark->second.lease(), move->second.lease());
  EXPECT_EQ(etcd_.Save().values.count("t/leaving/ps1"), 0u);
}

TEST_F(MovingTest, ACommandThatLostItsRightEnds) {
  Begin();
  for (const auto& node : nodes_) node->replicas.SetCompletes(false);
  std::thread thief = OnceOneJoins([this] {
    membership::v1::Move move;
    move.set_kind(membership::v1::Move::REBALANCE);
    move.set_by("process 9 on elsewhere");
    etcd_.Put("t/move", move.SerializeAsString());
  });
  const absl::Status drained = DrainServer(options_, "ps1");
  thief.join();
  EXPECT_TRUE(absl::IsAborted(drained)) << drained;
  EXPECT_THAT(drained.ToString(), HasSubstr("a rebalance by process 9"));
}

}  // namespace
}  // namespace penstock::ps::views
