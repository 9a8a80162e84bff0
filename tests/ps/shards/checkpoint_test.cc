// Tests checkpoints of replicated shards: whole steps only, at all shards,
// while primaries die. Also tests restores from them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "ps/checkpoint/chain.h"
#include "ps/checkpoint/manifest.h"
#include "ps/checkpoint/posix_files.h"
#include "ps/shards/shards.h"
#include "ps/wire/ps.grpc.pb.h"
#include "ps/wire/shard_key.h"
#include "tests/ps/checkpoint/test_folder.h"
#include "tests/ps/server/small_server.h"
#include "tests/ps/server/small_training.h"
#include "tests/ps/service/held_files.h"
#include "tests/ps/shards/cluster.h"
#include "tests/ps/shards/two_tables.h"

namespace penstock::ps {
namespace {

// Workers whose pushes each add 1 to the worker's element, at all shards. The
// elements of a cut are therefore the clocks of the cut.
class Workers {
 public:
  explicit Workers(Cluster* cluster)
      : cluster_(cluster), parts_(PartsOf(*cluster)) {
    for (uint32_t rank = 0; rank < kWorkers; ++rank) {
      threads_.emplace_back([this, rank] { Work(rank); });
    }
  }
  ~Workers() {
    stop_ = true;
    for (std::thread& each : threads_) each.join();
  }
  uint64_t pushes() const { return pushes_; }
  void Await(uint64_t more) const {
    const uint64_t wanted = pushes_ + more;
    const absl::Time deadline = absl::Now() + absl::Seconds(60);
    while (pushes_ < wanted && absl::Now() < deadline) {
      absl::SleepFor(absl::Milliseconds(1));
    }
    EXPECT_GE(pushes_, wanted);
  }

 private:
  void Work(uint32_t rank) {
    const WorkerId worker{rank, 100 + rank};
    for (uint32_t shard = 0; shard < kShards; ++shard) {
      ASSERT_TRUE(cluster_->Join(shard, worker).ok());
    }
    for (uint64_t clock = 0; !stop_; ++clock) {
      for (uint32_t shard = 0; shard < kShards; ++shard) {
        ASSERT_NO_FATAL_FAILURE(PushOne(cluster_, parts_, shard, rank, clock));
        ++pushes_;
      }
    }
  }

  Cluster* const cluster_;
  const std::vector<std::string> parts_;  // by shard
  std::atomic<bool> stop_{false};
  std::atomic<uint64_t> pushes_{0};
  std::vector<std::thread> threads_;
};

// Writes the shards of an attempt in parallel.
absl::StatusOr<std::vector<CheckpointShard>> WriteShards(
    const std::vector<std::shared_ptr<Shard>>& shards,
    const CheckpointAttempt& attempt, const CutPoint& cut) {
  std::vector<absl::StatusOr<CheckpointShard>> written(
      shards.size(), absl::UnknownError("not written"));
  std::vector<std::thread> writing;
  for (size_t at = 0; at < shards.size(); ++at) {
    writing.emplace_back([&, at] {
      const auto writer = shards[at]->Writer();
      if (writer.ok()) {
        written[at] = (*writer)->Write(attempt, cut);
      } else {
        written[at] = writer.status();
      }
    });
  }
  for (std::thread& each : writing) each.join();
  std::vector<CheckpointShard> all;
  for (auto& each : written) {
    if (!each.ok()) return each.status();
    all.push_back(*each);
  }
  return all;
}

// Takes a checkpoint of all shards, as a client does. Returns its step.
absl::StatusOr<uint64_t> TryCheckpoint(Cluster* cluster) {
  std::vector<std::shared_ptr<Shard>> shards;
  std::vector<HeldSteps> held;
  for (uint32_t at = 0; at < kShards; ++at) {
    const auto node = cluster->PrimaryOf(at);
    if (node == nullptr) return absl::UnavailableError("no primary");
    auto shard = node->shards().LeaderOf(at);
    if (!shard.ok()) return shard.status();
    shards.push_back(*shard);
    auto steps = shards.back()->cuts()->HoldSteps(kView);
    if (!steps.ok()) return steps.status();
    held.push_back(*steps);
  }
  const auto first = shards.front()->Writer();
  if (!first.ok()) return first.status();
  CheckpointRequest request{kView};
  const ServerReport report = shards.front()->server()->report();
  for (const WorkerReport& each : report.workers) {
    request.clocks.push_back({each.rank, 0, each.pushed});
  }
  const auto begun = (*first)->Begin(request);
  if (!begun.ok()) return begun.status();
  const auto written =
      WriteShards(shards, begun->attempt, FirstCutOf(held, false));
  if (!written.ok()) {
    (*first)->GiveUp(begun->attempt);
    return written.status();
  }
  const auto removed = (*first)->Commit(begun->attempt, *written);
  if (!removed.ok()) return removed.status();
  return begun->attempt.step;
}

absl::StatusOr<uint64_t> Checkpoint(Cluster* cluster) {
  const absl::Time deadline = absl::Now() + absl::Seconds(60);
  absl::StatusOr<uint64_t> taken = TryCheckpoint(cluster);
  while ((absl::IsUnavailable(taken.status()) ||
          absl::IsOutOfRange(taken.status())) &&
         absl::Now() < deadline) {
    absl::SleepFor(absl::Milliseconds(20));
    taken = TryCheckpoint(cluster);
  }
  return taken;
}

// Restores the newest checkpoint, and checks that its values belong to its
// clocks.
void CheckNewest(checkpoint::Files* files, uint64_t step) {
  SmallTraining::Options options;
  options.servers = kShards;
  options.workers = kWorkers;
  options.restore = true;
  SmallTraining training(TwoTables(ConsistencyPolicy::kUnlimited), files,
                         options);
  const auto restored = training.Define();
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_EQ(*restored, step);
  const auto manifest = checkpoint::ReadManifest(files, step);
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  std::vector<float> clocks(kWorkers);
  for (const checkpoint::WorkerClock& each : manifest->cut.clocks) {
    clocks[each.rank] = static_cast<float>(each.clock);
  }
  TrainingState state = training.State();
  EXPECT_EQ(state.dense["a"], clocks);
  EXPECT_EQ(state.dense["b"], clocks);
}

TEST(CheckpointTest, HasWholeStepsOfAllShardsAlsoAfterFailovers) {
  const checkpoint::TestFolder folder;
  const auto opened = checkpoint::OpenFolder(folder.name());
  ASSERT_TRUE(opened.ok()) << opened.status();
  checkpoint::Files* const files = opened->get();
  Cluster::Options options{3, kShards, 1, kWorkers, files};
  Cluster cluster(options, TwoTables(ConsistencyPolicy::kUnlimited));
  cluster.AwaitBackups();
  Workers workers(&cluster);
  uint64_t last = 0;
  for (int failover = 0; failover < 3; ++failover) {
    for (int i = 0; i < 3; ++i) {
      workers.Await(20);
      const auto step = Checkpoint(&cluster);
      ASSERT_TRUE(step.ok()) << step.status();
      EXPECT_GT(*step, last);
      last = *step;
    }
    ASSERT_NO_FATAL_FAILURE(CheckNewest(files, last));
    cluster.AwaitBackups();
    cluster.KillPrimary(failover == 1 ? 1 : 0);
  }
  // Expects that no checkpoint was set aside, because all are of one run.
  EXPECT_EQ(checkpoint::ListSteps(files)->size(), 9u);
}

// Calls WriteShard() of a process, for a cut that has all pushes.
grpc::Status CallWriteShard(const Node& node, uint32_t shard,
                            const CheckpointAttempt& attempt,
                            const CutPoint& cut) {
  v1::WriteShardRequest request;
  request.mutable_view()->set_run(kView.run);
  request.mutable_view()->set_epoch(kView.epoch);
  request.mutable_attempt()->set_step(attempt.step);
  request.mutable_attempt()->set_id(attempt.id);
  for (const RankClock& each : cut.clocks) {
    v1::WorkerClock* const clock = request.mutable_cut()->add_clocks();
    clock->mutable_worker()->set_rank(each.worker.rank);
    clock->set_clock(each.clock);
  }
  grpc::ClientContext context;
  context.AddMetadata(kShardKey, absl::StrCat(shard));
  context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(60)));
  v1::ShardInfo written;
  return v1::ParameterServer::NewStub(node.channel())
      ->WriteShard(&context, request, &written);
}

TEST(CheckpointTest, AServerWritesAllItsShardsAtTheSameTime) {
  const checkpoint::TestFolder folder;
  const auto opened = checkpoint::OpenFolder(folder.name());
  ASSERT_TRUE(opened.ok()) << opened.status();
  HeldFiles files(opened->get());
  Cluster cluster({2, kShards, 1, kWorkers, &files},
                  TwoTables(ConsistencyPolicy::kUnlimited));
  ASSERT_NO_FATAL_FAILURE(PushClocks(&cluster));
  cluster.AwaitBackups();
  cluster.KillPrimary(1);
  cluster.AwaitBackups();
  const std::shared_ptr<Node> node = cluster.PrimaryOf(0);
  ASSERT_EQ(node, cluster.PrimaryOf(1));
  std::vector<HeldSteps> held;
  for (uint32_t shard = 0; shard < kShards; ++shard) {
    const auto leader = node->shards().LeaderOf(shard);
    ASSERT_TRUE(leader.ok()) << leader.status();
    const auto steps = (*leader)->cuts()->HoldSteps(kView);
    ASSERT_TRUE(steps.ok()) << steps.status();
    held.push_back(*steps);
  }
  const auto writer = (*node->shards().LeaderOf(0))->Writer();
  ASSERT_TRUE(writer.ok()) << writer.status();
  const auto begun = (*writer)->Begin({kView});
  ASSERT_TRUE(begun.ok()) << begun.status();
  std::vector<std::thread> calls;
  for (uint32_t shard = 0; shard < kShards; ++shard) {
    calls.emplace_back([&, shard] {
      const grpc::Status written =
          CallWriteShard(*node, shard, begun->attempt, FirstCutOf(held, false));
      EXPECT_TRUE(written.ok()) << written.error_message();
    });
  }
  EXPECT_TRUE(files.AwaitWaiting(kShards));
  files.Release();
  for (std::thread& each : calls) each.join();
}

// Tests a replica that has the clocks from a snapshot only, because no rank
// pushes any more.
TEST(CheckpointTest, ACopyKnowsTheClocksOfSilentRanks) {
  const checkpoint::TestFolder folder;
  const auto opened = checkpoint::OpenFolder(folder.name());
  ASSERT_TRUE(opened.ok()) << opened.status();
  checkpoint::Files* const files = opened->get();
  Cluster::Options options{3, kShards, 1, kWorkers, files};
  Cluster cluster(options, TwoTables(ConsistencyPolicy::kUnlimited));
  ASSERT_NO_FATAL_FAILURE(PushClocks(&cluster));
  for (int kill = 0; kill < 2; ++kill) {
    cluster.AwaitBackups();
    cluster.KillPrimary(0);
  }
  const auto step = Checkpoint(&cluster);
  ASSERT_TRUE(step.ok()) << step.status();
  CheckNewest(files, *step);
  const auto manifest = checkpoint::ReadManifest(files, *step);
  ASSERT_EQ(manifest->cut.clocks.size(), kWorkers);
  for (const checkpoint::WorkerClock& each : manifest->cut.clocks) {
    EXPECT_EQ(each.clock, each.rank + 1);
  }
}

}  // namespace
}  // namespace penstock::ps
