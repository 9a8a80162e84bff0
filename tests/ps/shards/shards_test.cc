// Tests that shards keep their promises while servers are killed, join and are
// isolated.

#include "ps/shards/shards.h"

#include <cmath>
#include <random>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "ps/wire/ps.grpc.pb.h"
#include "ps/wire/shard_key.h"
#include "tests/ps/server/small_server.h"
#include "tests/ps/shards/cluster.h"

namespace penstock::ps {
namespace {

using Verdict = Exchange::PushVerdict;

constexpr int64_t kAsynchronous = ConsistencyPolicy::kUnlimited;

Model ModelOf(std::vector<TableSpec> tables) {
  Model model;
  model.tables = std::move(tables);
  return model;
}

uint32_t RandomSeed() {
  const auto seed = std::random_device()();
  std::cout << "seed " << seed << std::endl;
  return seed;
}

// Adds 1 to one element: the learning rate is 1.
tensor::Bundle AddOneAt(size_t at, size_t elements) {
  std::vector<float> gradient(elements);
  gradient[at] = -1;
  tensor::Bundle bundle;
  bundle.tensors.push_back(
      Floats("w", {static_cast<int64_t>(elements)}, gradient));
  return bundle;
}

// Pushes until `stop`. Returns the number of acknowledged pushes.
uint64_t PushSteps(Cluster* cluster, uint32_t rank, size_t workers,
                   const std::atomic<bool>& stop) {
  const WorkerId worker{rank, 100 + rank};
  auto clock = cluster->Join(0, worker);
  EXPECT_TRUE(clock.ok()) << clock.status();
  uint64_t acknowledged = 0;
  while (!stop && clock.ok()) {
    const auto verdict =
        cluster->Push(0, worker, *clock, AddOneAt(rank, workers));
    if (!verdict.ok()) {
      ADD_FAILURE() << verdict.status();
      break;
    }
    EXPECT_NE(*verdict, Verdict::kLate);
    ++acknowledged;
    ++*clock;
  }
  return acknowledged;
}

std::vector<float> ValuesOf(const absl::StatusOr<Exchange::Pulled>& pulled) {
  EXPECT_TRUE(pulled.ok()) << pulled.status();
  if (!pulled.ok()) return {};
  return ElementsOf(pulled->bundle.tensors.front().tensor);
}

TEST(ShardsTest, EachAcknowledgedPushCountsOnceWhilePrimariesDie) {
  std::mt19937 random(RandomSeed());
  constexpr size_t kWorkers = 3;
  Cluster cluster({3, 1, 1, kWorkers},
                  ModelOf({DenseTable("w", {kWorkers}, kAsynchronous)}));
  cluster.AwaitBackups();
  std::atomic<bool> stop{false};
  std::vector<uint64_t> acknowledged(kWorkers);
  std::vector<std::thread> workers;
  for (uint32_t rank = 0; rank < kWorkers; ++rank) {
    workers.emplace_back([&, rank] {
      acknowledged[rank] = PushSteps(&cluster, rank, kWorkers, stop);
    });
  }
  for (int kill = 0; kill < 4; ++kill) {
    cluster.AwaitBackups();
    absl::SleepFor(absl::Milliseconds(random() % 200));
    cluster.KillPrimary(0);
  }
  stop = true;
  for (std::thread& each : workers) each.join();
  const std::vector<float> expected(acknowledged.begin(), acknowledged.end());
  std::vector<float> values = ValuesOf(cluster.Pull(0, {}, 0));
  // Waits, because the last pushes may still be applied, and pulls do not wait
  // for them.
  const absl::Time deadline = absl::Now() + absl::Seconds(10);
  while (values != expected && absl::Now() < deadline) {
    absl::SleepFor(absl::Milliseconds(5));
    values = ValuesOf(cluster.Pull(0, {}, 0));
  }
  EXPECT_EQ(values, expected);
}

// Returns a gradient that depends on the values. Any difference between
// replicas therefore grows.
tensor::Bundle GradientOf(const std::vector<float>& values, uint32_t rank,
                          uint64_t step) {
  std::vector<float> gradient;
  for (size_t i = 0; i < values.size(); ++i) {
    gradient.push_back(std::sin(values[i] + static_cast<float>(rank) +
                                static_cast<float>(step * i) * 0.1f));
  }
  tensor::Bundle bundle;
  bundle.tensors.push_back(
      Floats("w", {static_cast<int64_t>(values.size())}, gradient));
  return bundle;
}

TableSpec MomentumTable() {
  TableSpec table = DenseTable("w", {8});
  table.optimizer.rule = optim::Rule::kMomentum;
  table.optimizer.schedule.learning_rate = 0.1;
  return table;
}

void Train(Cluster* cluster, uint32_t rank, uint64_t steps,
           std::atomic<uint64_t>* progress) {
  const WorkerId worker{rank, 100 + rank};
  ASSERT_TRUE(cluster->Join(0, worker).ok());
  for (uint64_t step = 0; step < steps; ++step) {
    const auto pulled = cluster->Pull(0, worker, step);
    ASSERT_TRUE(pulled.ok()) << pulled.status();
    ASSERT_EQ(pulled->clock, step);
    const auto verdict = cluster->Push(
        0, worker, step, GradientOf(ValuesOf(pulled), rank, step));
    ASSERT_TRUE(verdict.ok()) << verdict.status();
    *progress = step;
    // Leaves time for a joiner, which catches up during the training.
    absl::SleepFor(absl::Milliseconds(2));
  }
}

std::vector<float> TrainAll(Cluster* cluster, uint64_t steps, int kills) {
  cluster->AwaitBackups();
  std::atomic<uint64_t> progress{0};
  std::vector<std::thread> workers;
  for (uint32_t rank = 0; rank < 2; ++rank) {
    workers.emplace_back([&, rank] { Train(cluster, rank, steps, &progress); });
  }
  for (int kill = 1; kill <= kills; ++kill) {
    const uint64_t at =
        steps * static_cast<uint64_t>(kill) / static_cast<uint64_t>(kills + 1);
    while (progress < at && !testing::Test::HasFailure()) {
      absl::SleepFor(absl::Milliseconds(1));
    }
    cluster->AwaitBackups();
    cluster->KillPrimary(0);
  }
  for (std::thread& each : workers) each.join();
  return ValuesOf(cluster->Pull(0, WorkerId{0, 100}, steps));
}

TEST(ShardsTest, SynchronousTrainingThroughFailoversIsBitEqual) {
  constexpr uint64_t kSteps = 400;
  Cluster quiet({1, 1, 0, 2}, ModelOf({MomentumTable()}));
  const std::vector<float> expected = TrainAll(&quiet, kSteps, 0);
  Cluster cluster({3, 1, 1, 2}, ModelOf({MomentumTable()}));
  EXPECT_EQ(TrainAll(&cluster, kSteps, 3), expected);
}

// Uses a large table, so that the step is still being applied when the second
// worker joins.
TEST(ShardsTest, AnEntryWaitsForTheStepBeforeIt) {
  constexpr size_t kElements = size_t{8} << 20;
  TableSpec table = DenseTable("w", {kElements});
  table.optimizer.rule = optim::Rule::kMomentum;
  Cluster cluster({1, 1, 0, 1}, ModelOf({table}));
  const WorkerId worker{0, 100};
  ASSERT_TRUE(cluster.Join(0, worker).ok());
  ASSERT_TRUE(cluster.Pull(0, worker, 0).ok());
  const auto pushed = cluster.Push(0, worker, 0, AddOneAt(0, kElements));
  ASSERT_TRUE(pushed.ok()) << pushed.status();
  const auto clock = cluster.Join(0, {1, 101});
  ASSERT_TRUE(clock.ok()) << clock.status();
  EXPECT_EQ(*clock, 1u);
}

tensor::Bundle SparsePush(uint64_t clock) {
  tensor::Bundle bundle = AddOneAt(0, 3);
  const auto id = static_cast<int64_t>(clock % 50);
  bundle.tensors.push_back(Ids("rows", {id, 1000 + id}));
  bundle.tensors.push_back(Floats("rows", {2, 2}, {-1, -2, -3, -4}));
  return bundle;
}

// Returns the values at one server. Reads them directly, and not through the
// server's log.
std::vector<float> ValuesAt(Server* server) {
  tensor::Bundle ids;
  std::vector<int64_t> all;
  for (int64_t id = 0; id < 50; ++id) {
    all.push_back(id);
    all.push_back(1000 + id);
  }
  ids.tensors.push_back(Ids("rows", all));
  Exchange::PullSpec spec;
  spec.all_parts = true;
  spec.ids = ids;
  Answer<Exchange::Pulled> answer;
  server->Pull(kView, spec, answer.callback());
  const auto pulled = answer.Wait();
  EXPECT_TRUE(pulled.ok()) << pulled.status();
  std::vector<float> values;
  if (!pulled.ok()) return values;
  for (const auto& each : pulled->bundle.tensors) {
    const std::vector<float> some = ElementsOf(each.tensor);
    values.insert(values.end(), some.begin(), some.end());
  }
  return values;
}

std::shared_ptr<Server> ServerAt(const std::shared_ptr<Node>& node) {
  const auto holder = node->shards().Find(0);
  return holder == nullptr ? nullptr : holder->server();
}

TEST(ShardsTest, JoinerCatchesUpWhilePushesGoOn) {
  Cluster cluster({3, 1, 1, 1},
                  ModelOf({DenseTable("w", {3}, kAsynchronous),
                           SparseTable("rows", 2, kAsynchronous)}));
  const WorkerId worker{0, 100};
  ASSERT_TRUE(cluster.Join(0, worker).ok());
  uint64_t clock = 0;
  const auto push = [&] {
    const auto verdict = cluster.Push(0, worker, clock, SparsePush(clock));
    ASSERT_TRUE(verdict.ok()) << verdict.status();
    ++clock;
  };
  // Lets a first backup join during pushes, and another one after a kill.
  for (int i = 0; i < 2; ++i) {
    while (cluster.view().shards[0].backups.empty()) push();
    for (int more = 0; more < 20; ++more) push();
    if (i == 0) cluster.KillPrimary(0);
  }
  const auto primary = cluster.PrimaryOf(0);
  const auto backup =
      cluster.node(cluster.view().shards[0].backups.front().server);
  ASSERT_NE(backup, nullptr);
  // Waits. The last push may still be being applied, and the backup learns only
  // by the next message that the push is committed.
  const absl::Time deadline = absl::Now() + absl::Seconds(20);
  std::vector<float> expected;
  while (expected.empty() || (expected.front() != static_cast<float>(clock) &&
                              absl::Now() < deadline)) {
    expected = ValuesAt(ServerAt(primary).get());
  }
  EXPECT_EQ(expected.front(), static_cast<float>(clock));
  while (ValuesAt(ServerAt(backup).get()) != expected &&
         absl::Now() < deadline) {
    absl::SleepFor(absl::Milliseconds(10));
  }
  EXPECT_EQ(ValuesAt(ServerAt(backup).get()), expected);
}

TEST(ShardsTest, SilentBackupIsDroppedWhileAPushWaits) {
  Cluster cluster({2, 1, 1, 1}, ModelOf({DenseTable("w", {1}, kAsynchronous)}));
  cluster.AwaitBackups();
  const WorkerId worker{0, 100};
  ASSERT_TRUE(cluster.Join(0, worker).ok());
  const auto primary = cluster.PrimaryOf(0);
  primary->peers().Cut(true);
  const auto verdict = cluster.Push(0, worker, 0, AddOneAt(0, 1));
  ASSERT_TRUE(verdict.ok()) << verdict.status();
  EXPECT_TRUE(cluster.view().shards[0].backups.empty());
  EXPECT_EQ(cluster.PrimaryOf(0), primary);
}

TEST(ShardsTest, DeposedPrimaryAnswersNothing) {
  Cluster cluster({2, 1, 1, 1}, ModelOf({DenseTable("w", {1}, kAsynchronous)}));
  cluster.AwaitBackups();
  const WorkerId worker{0, 100};
  ASSERT_TRUE(cluster.Join(0, worker).ok());
  ASSERT_TRUE(cluster.Push(0, worker, 0, AddOneAt(0, 1)).ok());
  const auto old = cluster.PrimaryOf(0);
  const std::string name = old->id().server;
  old->peers().Cut(true);
  cluster.Isolate(name, true);
  absl::SleepFor(absl::Seconds(1));  // the lease of the primary ends
  const auto calls = old->shards().CallsOf(0);
  ASSERT_TRUE(calls.ok());
  Answer<Verdict> push;
  (*calls)->Push(kView, worker, 1, AddOneAt(0, 1), push.callback(), true);
  Answer<Exchange::Pulled> pull;
  Exchange::PullSpec spec;
  spec.all_parts = true;
  (*calls)->Pull(kView, spec, pull.callback());
  cluster.GiveUp(name);
  // Repeats the push at the new primary, which already has it.
  const auto repeated = cluster.Push(0, worker, 1, AddOneAt(0, 1));
  ASSERT_TRUE(repeated.ok()) << repeated.status();
  EXPECT_EQ(*repeated, Verdict::kCounted);
  EXPECT_EQ(*cluster.Push(0, worker, 0, AddOneAt(0, 1)), Verdict::kDuplicate);
  EXPECT_FALSE(push.is_there());
  EXPECT_FALSE(pull.is_there());
  // Expects that the old primary refuses both calls once it knows the view.
  cluster.Isolate(name, false);
  const auto pushed = push.Wait();
  EXPECT_EQ(pushed.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(absl::StartsWith(pushed.status().message(), kNotPrimary))
      << pushed.status();
  EXPECT_TRUE(absl::StartsWith(pull.Wait().status().message(), kNotPrimary));
  EXPECT_EQ(ValuesOf(cluster.Pull(0, {}, 0)), std::vector<float>({2}));
}

TEST(ShardsTest, GradientsThatAreNotFiniteAreRefusedAndNotLogged) {
  Cluster cluster({2, 1, 1, 1}, ModelOf({DenseTable("w", {1}, kAsynchronous)}));
  cluster.AwaitBackups();
  const WorkerId worker{0, 100};
  ASSERT_TRUE(cluster.Join(0, worker).ok());
  tensor::Bundle bad;
  bad.tensors.push_back(Floats("w", {1}, {std::nanf("")}));
  const auto refused = cluster.Push(0, worker, 0, bad);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(cluster.Push(0, {1, 9}, 0, AddOneAt(0, 1)).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(*cluster.Push(0, worker, 0, AddOneAt(0, 1)), Verdict::kCounted);
}

// Makes calls over gRPC that name their shard in their metadata.
TEST(ShardsTest, ServiceFindsTheShardOfACall) {
  Cluster cluster({2, 2, 1, 1}, ModelOf({DenseTable("a", {1}, kAsynchronous),
                                         DenseTable("b", {1}, kAsynchronous)}));
  cluster.AwaitBackups();
  const auto model_of = [](const std::shared_ptr<Node>& node,
                           const std::string& shard, v1::GetModelReply* reply) {
    grpc::ClientContext context;
    if (!shard.empty()) context.AddMetadata(kShardKey, shard);
    return v1::ParameterServer::NewStub(node->channel())
        ->GetModel(&context, {}, reply);
  };
  const auto first = cluster.PrimaryOf(0);
  const auto second = cluster.PrimaryOf(1);
  v1::GetModelReply reply;
  EXPECT_TRUE(model_of(second, "", &reply).ok());
  EXPECT_EQ(reply.server(), 1u);
  grpc::Status refused = model_of(second, "0", &reply);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_TRUE(absl::StartsWith(refused.error_message(), kNotPrimary));
  EXPECT_EQ(model_of(second, "x", &reply).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  const uint64_t instance = first->own().instance();
  cluster.Isolate(first->id().server, true);
  cluster.GiveUp(first->id().server);
  while (!model_of(second, "0", &reply).ok()) {
    absl::SleepFor(absl::Milliseconds(5));
  }
  EXPECT_EQ(reply.server(), 0u);
  EXPECT_EQ(reply.instance(), instance);  // the same instance: no value is lost
  EXPECT_TRUE(model_of(second, "1", &reply).ok());
}

}  // namespace
}  // namespace penstock::ps
