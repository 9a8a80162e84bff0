// Tests moving shards between ps_server processes by `penstock ps`, while
// workers push.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "absl/time/time.h"
#include "tests/ps/etcd/real_etcd.h"
#include "tests/ps/failover/bank.h"
#include "tests/ps/failover/servers.h"

namespace penstock::ps {
namespace {

using testing::HasSubstr;

// Limits the pause of a worker. A move takes some tens of milliseconds, and
// less than the lease of 2 s even on a slow machine. A failover takes longer.
constexpr absl::Duration kLongestPause = absl::Milliseconds(1900);

TEST(MovesTest, ATrainingGoesOnWhileItsShardsMove) {
  SKIP_WITHOUT_ETCD();
  ReplicatedServers servers(3, /*replicas=*/1, /*workers=*/2);
  Bank bank(servers.Channels(), servers.addresses(), 2,
            ReplicatedServers::ChannelTo);
  ASSERT_TRUE(servers.AwaitBackups()) << servers.Logs();
  bank.AwaitTransfers(50);
  bank.TakeLongestPause();

  const auto [drained, said] = servers.RunPs("drain", {"ps-1"});
  EXPECT_EQ(drained, 0) << said << servers.Logs();
  EXPECT_THAT(said, HasSubstr("ps-1 holds nothing\nlongest pause of a pull"));
  EXPECT_EQ(servers.PartsOf(1), 0);
  const absl::Duration pause = bank.TakeLongestPause();
  std::printf("%slongest pause of a worker: %s\n", said.c_str(),
              absl::FormatDuration(pause).c_str());
  EXPECT_LT(pause, kLongestPause);
  servers.Kill(1);  // no shard needs it
  bank.AwaitTransfers(50);
  EXPECT_LT(bank.TakeLongestPause(), kLongestPause);

  // Starts a server at another address, which replaces server 1 and then takes
  // its shard.
  ASSERT_TRUE(servers.StartElsewhere(1, "ps-1b")) << servers.Logs();
  const auto added = servers.RunPs("add", {"ps-1b"});
  EXPECT_EQ(added.first, 0) << added.second << servers.Logs();
  const auto balanced = servers.RunPs("rebalance", {});
  EXPECT_EQ(balanced.first, 0) << balanced.second << servers.Logs();
  EXPECT_EQ(servers.PrimaryOf(1), 1u) << balanced.second;
  ASSERT_TRUE(servers.AwaitBackups());
  bank.AwaitTransfers(50);
  EXPECT_LT(bank.TakeLongestPause(), kLongestPause) << balanced.second;
  bank.SetServers(servers.Channels());
  EXPECT_EQ(bank.Close(), "") << servers.Logs();
}

TEST(MovesTest, ADrainThatIsImpossibleSaysWhy) {
  SKIP_WITHOUT_ETCD();
  ReplicatedServers servers(2, /*replicas=*/1, /*workers=*/1);
  Bank bank(servers.Channels(), servers.addresses(), 1);
  ASSERT_TRUE(servers.AwaitBackups()) << servers.Logs();
  auto refused = servers.RunPs("drain", {"ps-0"});
  EXPECT_EQ(refused.first, 1);
  EXPECT_THAT(refused.second, HasSubstr("start another server first"));
  refused = servers.RunPs("drain", {"ps-9"});
  EXPECT_EQ(refused.first, 1);
  EXPECT_THAT(refused.second, HasSubstr("no server ps-9 is registered"));
  servers.etcd()->Kill();
  refused = servers.RunPs("drain", {"ps-0", "--timeout=1s"});
  EXPECT_EQ(refused.first, 1);
  EXPECT_THAT(refused.second, HasSubstr("etcd"));
  bank.AwaitTransfers(20);
  EXPECT_EQ(bank.Close(), "") << servers.Logs();
}

}  // namespace
}  // namespace penstock::ps
