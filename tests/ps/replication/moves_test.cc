#include "ps/replication/moves.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ps/replication/replica_list.h"

namespace penstock::ps::replication {
namespace {

using Replicas = std::vector<ReplicaId>;

ReplicaId Server(uint64_t number) {
  return {absl::StrCat("ps", number, ":1"), 100 + number};
}

// Three servers, each of which leads its own shard and backs up another one.
class MovesTest : public testing::Test {
 protected:
  // Makes one move, and lets its joiner become a backup. Returns false if no
  // move is wanted.
  bool Move() {
    const auto move = NextMove(view_, live_, requests_, copies_);
    if (!move) return false;
    ShardReplicas& shard = view_.shards[move->shard];
    shard = move->after;
    for (const ReplicaId& joiner : shard.joiners) {
      shard.backups.push_back(joiner);
    }
    shard.joiners.clear();
    return true;
  }

  Replicas live_ = {Server(0), Server(1), Server(2)};
  MoveRequests requests_ = {{}, false, {"ps0:1", "ps1:1", "ps2:1"}};
  View view_ = {7,
                3,
                {{Server(0), {Server(1)}, {}},
                 {Server(1), {Server(2)}, {}},
                 {Server(2), {Server(0)}, {}}}};
  size_t copies_ = 2;
};

TEST_F(MovesTest, NothingMovesUnasked) {
  EXPECT_FALSE(Move());
  requests_.to_own_servers = true;
  EXPECT_FALSE(Move());
}

TEST_F(MovesTest, ALeavingPrimaryIsReplacedBeforeItLeaves) {
  requests_.leaving = {Server(0)};
  // Shard 0: server 2 joins, server 1 leads, server 0 leaves.
  auto move = NextMove(view_, live_, requests_, copies_);
  ASSERT_TRUE(move.has_value());
  EXPECT_EQ(move->shard, 0u);
  EXPECT_EQ(move->after, (ShardReplicas{Server(0), {Server(1)}, {Server(2)}}));
  ASSERT_TRUE(Move());
  ASSERT_TRUE(Move());
  EXPECT_EQ(view_.shards[0],
            (ShardReplicas{Server(1), {Server(2), Server(0)}, {}}));
  ASSERT_TRUE(Move());
  EXPECT_EQ(view_.shards[0], (ShardReplicas{Server(1), {Server(2)}, {}}));
  while (Move()) {
  }
  EXPECT_EQ(PartsOf(view_, Server(0)), 0u);
  EXPECT_EQ(view_.shards[2], (ShardReplicas{Server(2), {Server(1)}, {}}));
}

TEST_F(MovesTest, ALeavingServerStaysIfTooFewOthersLive) {
  requests_.leaving = {Server(0), Server(1)};
  while (Move()) {
  }
  for (const ShardReplicas& shard : view_.shards) {
    EXPECT_EQ(shard.backups.size(), 1u);
  }
  // Adds a new server, which takes the place of the lost one.
  live_.push_back(Server(3));
  requests_.own_servers[0] = Server(3).server;
  while (Move()) {
  }
  EXPECT_EQ(PartsOf(view_, Server(0)), 0u);
  EXPECT_EQ(PartsOf(view_, Server(1)), 0u);
  EXPECT_EQ(PartsOf(view_, Server(3)), 3u);
}

TEST_F(MovesTest, ShardsGoBackToTheirOwnServers) {
  const View at_home = view_;
  view_.shards = {{Server(1), {Server(2)}, {}},
                  {Server(1), {Server(2)}, {}},
                  {Server(2), {Server(1)}, {}}};
  EXPECT_FALSE(Move());
  requests_.to_own_servers = true;
  while (Move()) {
  }
  EXPECT_EQ(view_.shards, at_home.shards);
}

TEST_F(MovesTest, AShardWhoseOwnServerIsAwayStaysWhereItIs) {
  view_.shards[0] = {Server(2), {Server(1)}, {}};
  view_.shards[2] = {Server(2), {Server(1)}, {}};
  live_ = {Server(1), Server(2)};
  requests_.to_own_servers = true;
  while (Move()) {
  }
  EXPECT_EQ(view_.shards[0].primary, Server(2));
  EXPECT_EQ(view_.shards[2].primary, Server(2));
}

TEST_F(MovesTest, ASurplusBackupLeaves) {
  view_.shards[1].backups.push_back(Server(0));
  ASSERT_TRUE(Move());
  EXPECT_EQ(view_.shards[1], (ShardReplicas{Server(1), {Server(2)}, {}}));
  EXPECT_FALSE(Move());
}

}  // namespace
}  // namespace penstock::ps::replication
