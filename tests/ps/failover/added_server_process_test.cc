// Tests that periodic checkpoints continue after a server at another address
// has replaced a lost server and taken its shard.

#include <gtest/gtest.h>

#include <string>

#include "tests/ps/checkpoint/test_folder.h"
#include "tests/ps/etcd/real_etcd.h"
#include "tests/ps/failover/bank.h"
#include "tests/ps/failover/checkpoints.h"
#include "tests/ps/failover/servers.h"

namespace penstock::ps {
namespace {

TEST(AddedServerTest, PeriodicCheckpointsHaveItsShard) {
  SKIP_WITHOUT_ETCD();
  const checkpoint::TestFolder kept;
  const std::string& folder = kept.name();
  // Starts servers with --restore, which a folder with checkpoints requires.
  ReplicatedServers servers(
      2, /*replicas=*/1, /*workers=*/1,
      {"--checkpoints=" + folder, "--checkpoint-every=1", "--restore=newest"});
  Bank bank(servers.Channels(), servers.addresses(), 1,
            ReplicatedServers::ChannelTo);
  ASSERT_TRUE(servers.AwaitBackups()) << servers.Logs();
  servers.Kill(1);
  ASSERT_TRUE(servers.StartElsewhere(1, "ps-1b")) << servers.Logs();
  const auto added = servers.RunPs("add", {"ps-1b"});
  ASSERT_EQ(added.first, 0) << added.second << servers.Logs();
  const auto balanced = servers.RunPs("rebalance", {});
  ASSERT_EQ(balanced.first, 0) << balanced.second << servers.Logs();
  ASSERT_EQ(servers.PrimaryOf(1), 1u) << balanced.second;
  // Waits for the second new checkpoint, because the first one may have begun
  // before the change.
  AwaitCheckpointAfter(folder, NewestIn(folder));
  AwaitCheckpointAfter(folder, NewestIn(folder));
  bank.SetServers(servers.Channels());
  EXPECT_EQ(bank.Close(), "") << servers.Logs();
}

}  // namespace
}  // namespace penstock::ps
