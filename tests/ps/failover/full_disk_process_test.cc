// Tests a training with replicas in which one server can no longer write to any
// file: first as a backup, then as the primary of all shards.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "ps/client/checkpoint.h"
#include "ps/client/training_connection.h"
#include "tests/ps/checkpoint/test_folder.h"
#include "tests/ps/etcd/real_etcd.h"
#include "tests/ps/failover/bank.h"
#include "tests/ps/failover/checkpoints.h"
#include "tests/ps/failover/servers.h"
#include "transport/base/steady_time.h"

namespace penstock::ps {
namespace {

using testing::HasSubstr;

constexpr absl::Duration kPatience = absl::Seconds(30);

absl::Status Save(const ReplicatedServers& servers) {
  TrainingConnection::Options open;
  open.servers = servers.Channels();
  open.timeout = kPatience;
  const auto connection = TrainingConnection::Open(open);
  if (!connection.ok()) return connection.status();
  CheckpointOptions options;
  options.timeout = kPatience;
  return TakeCheckpoint(**connection, options).status();
}

// Takes checkpoints until the error is not that of a failover. Returns that
// error, or OK.
absl::Status SaveAfterFailover(const ReplicatedServers& servers) {
  const absl::Time limit = base::SteadyNow() + kPatience;
  absl::Status saved = Save(servers);
  while (!saved.ok() && !absl::IsResourceExhausted(saved) &&
         base::SteadyNow() < limit) {
    saved = Save(servers);
  }
  return saved;
}

TEST(FullDiskTest, OfOneServerCostsOnlyTheCheckpointsThatItWrites) {
  SKIP_WITHOUT_ETCD();
  const checkpoint::TestFolder kept;
  const std::string& folder = kept.name();
  ReplicatedServers servers(2, /*replicas=*/1, /*workers=*/2,
                            {"--checkpoints=" + folder, "--restore=newest"});
  Bank bank(servers.Channels(), servers.addresses(), 2);
  ASSERT_TRUE(servers.AwaitBackups()) << servers.Logs();
  bank.AwaitTransfers(20);

  // The server with the full disk is only a backup. Checkpoints do not need
  // this server.
  servers.Kill(1);
  bank.AwaitTransfers(20);
  servers.TakeQuota(1);
  ASSERT_TRUE(servers.Start(1)) << servers.Logs();
  ASSERT_TRUE(servers.AwaitBackups()) << servers.Logs();
  absl::Status saved = SaveAfterFailover(servers);
  ASSERT_TRUE(saved.ok()) << saved << servers.Logs();
  const uint64_t step = NewestIn(folder);
  EXPECT_GT(step, 0u);

  // The server with the full disk leads all shards. Only checkpoints fail.
  servers.Kill(0);
  bank.AwaitTransfers(20);
  saved = SaveAfterFailover(servers);
  EXPECT_TRUE(absl::IsResourceExhausted(saved)) << saved << servers.Logs();
  EXPECT_THAT(std::string(saved.message()), HasSubstr("ulimit -f"));
  EXPECT_EQ(NewestIn(folder), step);
  bank.AwaitTransfers(20);

  // Another server leads all shards again.
  ASSERT_TRUE(servers.Start(0)) << servers.Logs();
  ASSERT_TRUE(servers.AwaitBackups()) << servers.Logs();
  servers.Kill(1);
  bank.AwaitTransfers(20);
  saved = SaveAfterFailover(servers);
  EXPECT_TRUE(saved.ok()) << saved << servers.Logs();
  EXPECT_GT(NewestIn(folder), step);
  EXPECT_EQ(bank.failure(), "") << servers.Logs();
  EXPECT_EQ(bank.Close(), "") << servers.Logs();
}

}  // namespace
}  // namespace penstock::ps
