// Tests the lock of the checkpoint folder. The primary of shard 0 holds the
// lock.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "absl/cleanup/cleanup.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "ps/checkpoint/posix_files.h"
#include "ps/checkpoint/repository.h"
#include "ps/shards/shards.h"
#include "ps/wire/ps.grpc.pb.h"
#include "tests/ps/checkpoint/test_folder.h"
#include "tests/ps/service/held_files.h"
#include "tests/ps/shards/cluster.h"
#include "tests/ps/shards/two_tables.h"

namespace penstock::ps {
namespace {

// Waits until some process has locked the folder. Returns false after ten
// seconds.
bool IsLockedSoon(checkpoint::Files* files) {
  const absl::Time deadline = absl::Now() + absl::Seconds(10);
  while (absl::Now() < deadline) {
    if (absl::IsFailedPrecondition(
            checkpoint::Repository::Open(files).status())) {
      return true;
    }
    absl::SleepFor(absl::Milliseconds(5));
  }
  return false;
}

// Tests a training in which nobody takes a checkpoint.
TEST(CheckpointTest, EachPrimaryLocksTheFolder) {
  const checkpoint::TestFolder folder;
  const auto opened = checkpoint::OpenFolder(folder.name());
  ASSERT_TRUE(opened.ok()) << opened.status();
  Cluster cluster({3, kShards, 1, kWorkers, opened->get()},
                  TwoTables(ConsistencyPolicy::kUnlimited));
  EXPECT_TRUE(IsLockedSoon(opened->get()));
  cluster.AwaitBackups();
  cluster.KillPrimary(0);
  EXPECT_TRUE(IsLockedSoon(opened->get()));
}

// Tests a disk that takes long to lock the folder.
TEST(CheckpointTest, NoCallWaitsUntilTheFolderIsLocked) {
  const checkpoint::TestFolder folder;
  const auto opened = checkpoint::OpenFolder(folder.name());
  ASSERT_TRUE(opened.ok()) << opened.status();
  HeldFiles files(opened->get(), /*holds_locks=*/true);
  Cluster cluster({2, kShards, 1, kWorkers, &files},
                  TwoTables(ConsistencyPolicy::kUnlimited));
  absl::Notification done;
  std::thread guard([&] {
    EXPECT_TRUE(done.WaitForNotificationWithTimeout(absl::Seconds(20)))
        << "calls wait until the folder is locked";
    files.Release();
  });
  const absl::Cleanup end = [&] {
    done.Notify();
    guard.join();
  };
  ASSERT_TRUE(files.AwaitWaiting(1));
  ASSERT_NO_FATAL_FAILURE(PushClocks(&cluster));
  const auto leader = cluster.PrimaryOf(0)->shards().LeaderOf(0);
  ASSERT_TRUE(leader.ok()) << leader.status();
  EXPECT_TRUE((*leader)->Writer().ok());
  cluster.AwaitBackups();
}

// Calls ChooseCut() of a process, for a new run that replaces another one.
grpc::Status CallChooseCut(const Node& node, uint64_t replaces) {
  v1::ChooseCutRequest request;
  request.set_run(kRun + 9);
  request.set_replaces(replaces);
  grpc::ClientContext context;
  v1::ChooseCutReply choice;
  return v1::ParameterServer::NewStub(node.channel())
      ->ChooseCut(&context, request, &choice);
}

// Tests a chief that defines a training again while a primary has locked the
// folder.
TEST(CheckpointTest, TheFolderOfATrainingMayBeClaimedForIt) {
  const checkpoint::TestFolder folder;
  const auto opened = checkpoint::OpenFolder(folder.name());
  ASSERT_TRUE(opened.ok()) << opened.status();
  Cluster cluster({2, kShards, 1, kWorkers, opened->get()},
                  TwoTables(ConsistencyPolicy::kUnlimited));
  ASSERT_TRUE(IsLockedSoon(opened->get()));
  const auto node = cluster.PrimaryOf(0);
  const grpc::Status first = CallChooseCut(*node, 0);
  EXPECT_TRUE(first.ok()) << first.error_message();
  EXPECT_THAT(CallChooseCut(*node, kRun).error_message(),
              testing::HasSubstr("--restore"));
}

// Tests a chief that dies after it has defined a training again. The view is
// still that of the former training, whose primary holds the folder.
TEST(CheckpointTest, TheFolderMayBeClaimedAgainBeforeTheNextView) {
  const checkpoint::TestFolder folder;
  const auto opened = checkpoint::OpenFolder(folder.name());
  ASSERT_TRUE(opened.ok()) << opened.status();
  Cluster cluster({2, kShards, 1, kWorkers, opened->get()},
                  TwoTables(ConsistencyPolicy::kUnlimited));
  ASSERT_TRUE(IsLockedSoon(opened->get()));
  const auto node = cluster.PrimaryOf(0);
  const auto present = node->own().training();
  Server::Definition definition;
  definition.model = present->tables->model().model();
  definition.servers = present->tables->placement().servers();
  definition.run = kRun + 1;
  definition.replaces = kRun;
  definition.abandons = true;
  const auto defined = node->own().Define(definition);
  ASSERT_TRUE(defined.ok()) << defined.status();
  for (const uint64_t replaces : {uint64_t{0}, kRun}) {
    const grpc::Status chosen = CallChooseCut(*node, replaces);
    EXPECT_TRUE(chosen.ok()) << chosen.error_message();
  }
}

}  // namespace
}  // namespace penstock::ps
