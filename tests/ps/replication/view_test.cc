#include "ps/replication/view.h"

#include <cstdint>
#include <limits>
#include <random>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::ps::replication {
namespace {

using testing::HasSubstr;

ReplicaId Server(uint64_t number) {
  return {absl::StrCat("ps", number), 100 + number};
}

std::vector<ReplicaId> Servers(uint64_t count) {
  std::vector<ReplicaId> servers;
  for (uint64_t i = 0; i < count; ++i) servers.push_back(Server(i));
  return servers;
}

// Server 0 leads, server 1 is a backup, server 2 joins.
View OneShard() { return {7, 3, {{Server(0), {Server(1)}, {Server(2)}}}}; }

void ExpectInvalid(const View& view, const std::string& text) {
  const absl::Status status = CheckView(view);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr(text));
}

TEST(ViewTest, FirstViewSpreadsJoinersOverTheOtherServers) {
  const View view = *FirstView(7, Servers(5), 2);
  EXPECT_EQ(view.number, 1u);
  ASSERT_EQ(view.shards.size(), 5u);
  std::multiset<std::string> joiners;
  for (size_t at = 0; at < 5; ++at) {
    EXPECT_EQ(view.shards[at].primary, Server(at));
    EXPECT_TRUE(view.shards[at].backups.empty());
    for (const ReplicaId& id : view.shards[at].joiners) {
      joiners.insert(id.server);
    }
  }
  for (uint64_t i = 0; i < 5; ++i) {
    EXPECT_EQ(joiners.count(Server(i).server), 2u);
  }
}

TEST(ViewTest, MoreReplicasThanServersAreRefused) {
  const auto view = FirstView(7, Servers(2), 2);
  EXPECT_EQ(view.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(view.status().message()),
              HasSubstr("need 3 servers, and there are 2"));
  EXPECT_FALSE(FirstView(7, {}, 0).ok());
}

TEST(ViewTest, FlawsAreNamed) {
  EXPECT_TRUE(CheckView(OneShard()).ok());
  View view = OneShard();
  view.number = 0;
  ExpectInvalid(view, "number of the view is 0");
  view.number = std::numeric_limits<uint64_t>::max();
  ExpectInvalid(view, "number of the view");
  view = OneShard();
  view.shards.clear();
  ExpectInvalid(view, "0 shards");
  view.shards.resize(kMaxShards + 1, OneShard().shards[0]);
  ExpectInvalid(view, "4097 shards");
  view = OneShard();
  view.shards[0].joiners = {Server(1)};
  ExpectInvalid(view, "shard 0: ps1 (incarnation 65) appears twice");
  view = OneShard();
  view.shards.push_back({Server(3), {{"ps1", 5}}, {}});
  ExpectInvalid(view, "shard 1: two servers have the name ps1");
  view = OneShard();
  view.shards[0].primary.server.clear();
  ExpectInvalid(view, "name has 0 bytes");
  view.shards[0].primary.server.assign(kMaxServerName + 1, 'a');
  ExpectInvalid(view, "name has 513 bytes");
  view.shards[0].primary.server = "a\nb";
  ExpectInvalid(view, "not printable ASCII");
  view = OneShard();
  for (uint64_t i = 3; i < 20; ++i) {
    view.shards[0].joiners.push_back(Server(i));
  }
  ExpectInvalid(view, "20 replicas");
}

TEST(ViewTest, OnlyBackupsMayLeadAndOnlyReplicasBackUp) {
  const View before = OneShard();
  auto after = [&](const ShardReplicas& shard) {
    return CheckSuccessor(before, {7, 4, {shard}});
  };
  EXPECT_TRUE(after({Server(1), {Server(0)}, {Server(2)}}).ok());
  EXPECT_TRUE(after({Server(0), {Server(1), Server(2)}, {}}).ok());
  EXPECT_TRUE(after({Server(0), {}, {Server(9)}}).ok());
  EXPECT_THAT(std::string(after({Server(2), {}, {}}).message()),
              HasSubstr("cannot be the primary, since it was no backup"));
  EXPECT_THAT(std::string(after({Server(0), {Server(9)}, {}}).message()),
              HasSubstr("it has not caught up"));
  // Tests a restarted server, which has lost its replica.
  EXPECT_FALSE(after({{"ps1", 5}, {}, {}}).ok());
}

TEST(ViewTest, NumbersRiseByOne) {
  const View before = OneShard();
  for (uint64_t number : {2, 3, 5}) {
    View after = before;
    after.number = number;
    EXPECT_EQ(CheckSuccessor(before, after).code(),
              absl::StatusCode::kFailedPrecondition)
        << number;
  }
  View after = before;
  after.number = 4;
  EXPECT_TRUE(CheckSuccessor(before, after).ok());
  after.run = 8;
  EXPECT_FALSE(CheckSuccessor(before, after).ok());
}

TEST(ViewTest, ADroppedPrimaryIsFollowedByABackup) {
  const View after = *WithoutReplica(OneShard(), Server(0));
  EXPECT_EQ(after.number, 4u);
  EXPECT_EQ(after.shards[0], (ShardReplicas{Server(1), {}, {Server(2)}}));
  const auto lost = WithoutReplica(after, Server(1));
  EXPECT_EQ(lost.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(lost.status().message()),
              HasSubstr("shard 0 has no backup"));
  EXPECT_FALSE(WithoutReplica(after, Server(0)).ok());
}

TEST(ViewTest, RolesChangeOnlyAsTheyMay) {
  const View view = OneShard();
  EXPECT_FALSE(WithJoiner(view, 0, Server(1)).ok());
  EXPECT_FALSE(WithJoiner(view, 1, Server(9)).ok());
  EXPECT_FALSE(WithJoiner(view, 0, {"ps1", 5}).ok());  // still in the view
  EXPECT_FALSE(WithBackup(view, 0, Server(1)).ok());
  EXPECT_FALSE(WithPrimary(view, 0, Server(2)).ok());
  EXPECT_EQ(WithPrimary(view, 0, Server(1))->shards[0],
            (ShardReplicas{Server(1), {Server(0)}, {Server(2)}}));
}

TEST(ViewTest, WhateverAnOwnerDoesIsASuccessor) {
  std::mt19937_64 random(4711);
  View view = *FirstView(7, Servers(4), 2);
  for (int i = 0; i < 2000; ++i) {
    const size_t shard = random() % 4;
    const ReplicaId server = Server(random() % 6);
    absl::StatusOr<View> next;
    switch (random() % 4) {
      case 0:
        next = WithoutReplica(view, server);
        break;
      case 1:
        next = WithJoiner(view, shard, server);
        break;
      case 2:
        next = WithBackup(view, shard, server);
        break;
      default:
        next = WithPrimary(view, shard, server);
    }
    if (!next.ok()) continue;
    ASSERT_TRUE(CheckSuccessor(view, *next).ok()) << view.number;
    view = *next;
  }
  EXPECT_GT(view.number, 100u);
}

}  // namespace
}  // namespace penstock::ps::replication
