#include "ps/replication/view_keeper.h"

#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace penstock::ps::replication {
namespace {

using Replicas = std::vector<ReplicaId>;

constexpr uint64_t kRun = 7;

ReplicaId Server(uint64_t number) {
  return {absl::StrCat("ps", number, ":1"), 100 + number};
}

ViewKeeper::Knowledge ThreeServers() {
  ViewKeeper::Knowledge known;
  known.live = {Server(0), Server(1), Server(2)};
  known.are_all_live = true;
  known.sees_deaths = true;
  known.run = kRun;
  return known;
}

ViewKeeper KeeperOf(uint64_t server) {
  return ViewKeeper({Server(server), 1, absl::Seconds(10)});
}

constexpr absl::Time kNow = absl::UnixEpoch();

TEST(ViewKeeperTest, Server0MakesTheFirstViewOnceAllAreThere) {
  ViewKeeper::Knowledge known = ThreeServers();
  EXPECT_EQ(KeeperOf(1).Next(known, kNow), absl::nullopt);
  known.are_all_live = false;
  EXPECT_EQ(KeeperOf(0).Next(known, kNow), absl::nullopt);
  known.are_all_live = true;
  known.run = absl::nullopt;
  EXPECT_EQ(KeeperOf(0).Next(known, kNow), absl::nullopt);
  known.run = kRun;
  known.moves.leaving = {Server(2)};
  EXPECT_EQ(KeeperOf(0).Next(known, kNow), absl::nullopt);
  known.moves.leaving = {{Server(2).server, 1}};  // an earlier incarnation
  EXPECT_EQ(KeeperOf(0).Next(known, kNow), *FirstView(kRun, known.live, 1));
}

TEST(ViewKeeperTest, ANewRunGetsAFirstViewWithTheNextNumber) {
  ViewKeeper::Knowledge known = ThreeServers();
  known.view = *FirstView(kRun, known.live, 1);
  known.view->number = 41;
  known.run = kRun + 1;
  EXPECT_EQ(KeeperOf(1).Next(known, kNow), absl::nullopt);
  const auto next = KeeperOf(0).Next(known, kNow);
  ASSERT_TRUE(next.has_value());
  EXPECT_EQ(next->number, 42u);
  EXPECT_EQ(next->run, kRun + 1);
}

TEST(ViewKeeperTest, OnlyAJoinerBecomesABackup) {
  ViewKeeper::Knowledge known = ThreeServers();
  known.view = View{kRun,
                    3,
                    {{Server(0), {}, {}},
                     {Server(1), {Server(2)}, {}},
                     {Server(2), {Server(1)}, {}}}};
  ViewFollower::Request request;
  request.shard = 0;
  request.view = 3;
  request.complete = {Server(2)};
  known.requests = {request};
  const auto next = KeeperOf(0).Next(known, kNow);
  ASSERT_TRUE(next.has_value());
  EXPECT_EQ(next->shards[0].backups, Replicas());
  EXPECT_EQ(next->shards[0].joiners.size(), 1u);
}

// Server 2 is leaving. The copy of shard 0 moves when no other shard has a
// joiner.
TEST(ViewKeeperTest, ShardsMoveOneAfterAnother) {
  ViewKeeper::Knowledge known = ThreeServers();
  known.view = View{kRun,
                    3,
                    {{Server(0), {Server(2)}, {}},
                     {Server(1), {}, {Server(0)}},
                     {Server(1), {Server(0)}, {}}}};
  known.moves.own_servers = {Server(0).server, Server(1).server,
                             Server(2).server};
  known.moves.leaving = {Server(2)};
  ViewFollower::Request request;
  request.shard = 0;
  request.view = 3;
  request.has_begun = true;
  known.requests = {request};
  EXPECT_EQ(KeeperOf(0).Next(known, kNow), absl::nullopt);
  known.view->shards[1] = {Server(1), {Server(0)}, {}};
  const auto next = KeeperOf(0).Next(known, kNow);
  ASSERT_TRUE(next.has_value());
  EXPECT_EQ(next->shards[0].joiners, Replicas{Server(1)});
}

TEST(ViewKeeperTest, AServerThatIsNotRegisteredProposesNothing) {
  ViewKeeper::Knowledge known = ThreeServers();
  known.view = View{kRun,
                    3,
                    {{Server(0), {Server(1)}, {}},
                     {Server(1), {Server(2)}, {}},
                     {Server(2), {Server(0)}, {}}}};
  known.live = {Server(0), Server(2)};
  known.are_all_live = false;
  EXPECT_EQ(KeeperOf(1).Next(known, kNow), absl::nullopt);
  EXPECT_TRUE(KeeperOf(2).Next(known, kNow).has_value());
}

// Expects that any of these replicas may lead if it comes back unchanged.
TEST(ViewKeeperTest, AShardWhoseReplicasAreAllDeadKeepsThem) {
  ViewKeeper::Knowledge known = ThreeServers();
  known.view = View{
      kRun, 3, {{Server(0), {}, {}}, {Server(1), {Server(2)}, {Server(0)}}}};
  known.live = {Server(0)};
  known.are_all_live = false;
  const auto next = KeeperOf(0).Next(known, kNow);
  EXPECT_TRUE(!next.has_value() || next->shards[1] == known.view->shards[1]);
  EXPECT_EQ(LostShards(known).size(), 1u);
}

TEST(ViewKeeperTest, ALostShardStaysWithItsPrimaryAndTheOthersGoOn) {
  ViewKeeper::Knowledge known = ThreeServers();
  known.view = View{kRun,
                    3,
                    {{Server(0), {Server(1)}, {}},
                     {Server(1), {}, {Server(2)}},
                     {Server(2), {Server(0)}, {}}}};
  known.live = {Server(0), Server(2)};
  known.are_all_live = false;
  const auto next = KeeperOf(2).Next(known, kNow);
  ASSERT_TRUE(next.has_value());
  EXPECT_EQ(next->shards[0].backups, Replicas());
  EXPECT_EQ(next->shards[1].primary, Server(1));
  ASSERT_EQ(LostShards(known).size(), 1u);
  EXPECT_EQ(LostShards(known)[0].first, 1u);
  EXPECT_EQ(LostShards(known)[0].second, Server(1));
  // Tests a server that comes back without its memory. The server gets no shard
  // while the view still has its former incarnation.
  known.view = next;
  known.live = {Server(0), {Server(1).server, 900}, Server(2)};
  const auto later = KeeperOf(0).Next(known, kNow);
  ASSERT_TRUE(later.has_value());
  EXPECT_EQ(later->shards[0].joiners, Replicas({Server(2)}));
}

TEST(ViewKeeperTest, NobodyIsDroppedWhileTheListMayLackServers) {
  ViewKeeper::Knowledge known = ThreeServers();
  known.view = View{kRun,
                    3,
                    {{Server(0), {Server(1)}, {}},
                     {Server(1), {Server(2)}, {}},
                     {Server(2), {Server(0)}, {}}}};
  known.live = {Server(2)};
  known.sees_deaths = false;
  EXPECT_EQ(KeeperOf(2).Next(known, kNow), absl::nullopt);
  EXPECT_TRUE(LostShards(known).empty());
  // Tests a server that was restarted: its former incarnation counts as dead.
  known.live.push_back({Server(1).server, 900});
  const auto next = KeeperOf(2).Next(known, kNow);
  ASSERT_TRUE(next.has_value());
  EXPECT_EQ(next->shards[0].primary, Server(0));
  EXPECT_EQ(next->shards[1].primary, Server(2));
}

TEST(ViewKeeperTest, AReplicaThatWasComplainedOfRejoinsLater) {
  ViewKeeper::Knowledge known = ThreeServers();
  known.live = {Server(0), Server(1)};
  known.view = View{
      kRun, 3, {{Server(0), {Server(1)}, {}}, {Server(1), {Server(0)}, {}}}};
  ViewKeeper keeper = KeeperOf(0);
  known.requests = {{0, 3, true, {}, {{Server(1), "slow"}}}};
  const auto next = keeper.Next(known, kNow);
  ASSERT_TRUE(next.has_value());
  EXPECT_TRUE(next->shards[0].backups.empty());
  EXPECT_TRUE(next->shards[0].joiners.empty());
  known.view = next;
  known.requests.clear();
  EXPECT_EQ(keeper.Next(known, kNow + absl::Seconds(9)), absl::nullopt);
  const auto later = keeper.Next(known, kNow + absl::Seconds(10));
  ASSERT_TRUE(later.has_value());
  EXPECT_EQ(later->shards[0].joiners, Replicas({Server(1)}));
}

TEST(ViewKeeperTest, RequestsOfAnotherViewOrServerAreIgnored) {
  ViewKeeper::Knowledge known = ThreeServers();
  known.live = {Server(0), Server(1)};
  known.view = View{
      kRun, 3, {{Server(0), {}, {Server(1)}}, {Server(1), {Server(0)}, {}}}};
  known.requests = {{0, 2, true, {Server(1)}, {}},
                    {1, 3, true, {}, {{Server(0), "slow"}}},
                    {9, 3, true, {Server(1)}, {}}};
  EXPECT_EQ(KeeperOf(0).Next(known, kNow), absl::nullopt);
  known.requests = {{0, 3, true, {Server(1)}, {}}};
  const auto next = KeeperOf(0).Next(known, kNow);
  ASSERT_TRUE(next.has_value());
  EXPECT_EQ(next->shards[0].backups, Replicas({Server(1)}));
}

TEST(ViewKeeperTest, AFailedPrimaryLeavesItsShardToABackup) {
  ViewKeeper::Knowledge known = ThreeServers();
  known.view = View{kRun,
                    3,
                    {{Server(0), {Server(1)}, {}},
                     {Server(1), {Server(0)}, {}},
                     {Server(2), {Server(0)}, {}}}};
  known.requests = {{0, 3, true, {}, {{Server(0), "its disk is full"}}}};
  const auto next = KeeperOf(0).Next(known, kNow);
  ASSERT_TRUE(next.has_value());
  EXPECT_EQ(next->shards[0], (ShardReplicas{Server(1), {}, {}}));
  known.view->shards[0].backups.clear();
  known.live = {Server(0)};
  known.sees_deaths = false;
  EXPECT_EQ(KeeperOf(0).Next(known, kNow), absl::nullopt);
}

TEST(ViewKeeperTest, AFailedPrimaryLeavesItsShardToALiveBackupThatIsSlow) {
  ViewKeeper::Knowledge known = ThreeServers();
  known.view = View{kRun,
                    3,
                    {{Server(0), {Server(2), Server(1)}, {}},
                     {Server(1), {Server(0)}, {}},
                     {Server(2), {Server(0)}, {}}}};
  known.requests = {
      {0, 3, true, {}, {{Server(2), "slow"}, {Server(0), "its disk is full"}}}};
  known.live = {Server(0), Server(2)};
  known.sees_deaths = false;
  const auto next = KeeperOf(0).Next(known, kNow);
  ASSERT_TRUE(next.has_value());
  EXPECT_EQ(next->shards[0], (ShardReplicas{Server(2), {Server(1)}, {}}));
  known.live = {Server(0), Server(1), Server(2)};
  const auto prefers = KeeperOf(0).Next(known, kNow);
  ASSERT_TRUE(prefers.has_value());
  EXPECT_EQ(prefers->shards[0], (ShardReplicas{Server(1), {Server(2)}, {}}));
}

TEST(ViewKeeperTest, AFailedPrimaryKeepsItsShardWhileNoBackupLives) {
  ViewKeeper::Knowledge known = ThreeServers();
  known.view = View{kRun,
                    3,
                    {{Server(0), {Server(1)}, {}},
                     {Server(1), {Server(0)}, {}},
                     {Server(2), {Server(0)}, {}}}};
  known.requests = {{0, 3, true, {}, {{Server(0), "its disk is full"}}}};
  known.live = {Server(0), Server(2)};
  known.sees_deaths = false;
  EXPECT_EQ(KeeperOf(0).Next(known, kNow), absl::nullopt);
}

TEST(ViewKeeperTest, AMoveWaitsWhileAnotherReplicaJoins) {
  ViewKeeper::Knowledge known = ThreeServers();
  known.moves.own_servers = {"ps0:1", "ps1:1", "ps2:1"};
  known.moves.leaving = {Server(2)};
  known.view = View{kRun,
                    3,
                    {{Server(0), {Server(2)}, {}},
                     {Server(1), {}, {Server(0)}},
                     {Server(2), {Server(0)}, {}}}};
  EXPECT_EQ(KeeperOf(0).Next(known, kNow), absl::nullopt);
  known.view->shards[1] = {Server(1), {Server(0)}, {}};
  // Expects no proposal by this keeper, because the primary of the shard, once
  // it has begun, proposes the step itself.
  EXPECT_EQ(KeeperOf(0).Next(known, kNow), absl::nullopt);
  known.requests = {{0, 3, true, {}, {}}};
  EXPECT_EQ(KeeperOf(1).Next(known, kNow), absl::nullopt);
  const auto next = KeeperOf(0).Next(known, kNow);
  ASSERT_TRUE(next.has_value());
  EXPECT_EQ(next->shards[0],
            (ShardReplicas{Server(0), {Server(2)}, {Server(1)}}));
}

}  // namespace
}  // namespace penstock::ps::replication
