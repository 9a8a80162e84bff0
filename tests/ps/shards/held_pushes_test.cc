// Tests pushes that wait in front of the log while a checkpoint is taken.

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

#include "ps/shards/shards.h"
#include "tests/ps/server/small_server.h"
#include "tests/ps/server/small_training.h"
#include "tests/ps/shards/cluster.h"

namespace penstock::ps {
namespace {

constexpr size_t kWorkers = 3;

// A push that waits for a checkpoint, and its answer.
struct WaitingPush {
  WaitingPush(Cluster* cluster, uint32_t rank) {
    std::vector<float> gradient(kWorkers);
    gradient[rank] = -1;
    tensor::Bundle bundle;
    bundle.tensors.push_back(Floats("a", {kWorkers}, gradient));
    const auto calls = cluster->PrimaryOf(0)->shards().CallsOf(0);
    EXPECT_TRUE(calls.ok()) << calls.status();
    (*calls)->Push(kView, {rank, 100 + rank}, 0, bundle, answer.callback(),
                   true);
  }

  Answer<Exchange::PushVerdict> answer;
};

TEST(HeldPushesTest, AreWithinTheLimitWhileACheckpointIsTaken) {
  Cluster::Options options{2, 1, 1, kWorkers, nullptr};
  options.max_held_bytes = 2 * kWorkers * sizeof(float);  // two pushes
  Model model;
  model.tables = {DenseTable("a", {kWorkers}, ConsistencyPolicy::kUnlimited)};
  Cluster cluster(options, model);
  cluster.AwaitBackups();  // earlier, there may be no view
  for (uint32_t rank = 0; rank < kWorkers; ++rank) {
    ASSERT_TRUE(cluster.Join(0, {rank, 100 + rank}).ok());
  }
  ShardCuts* const cuts = cluster.PrimaryOf(0)->shards().Find(0)->cuts();
  ASSERT_TRUE(cuts->HoldSteps(kView).ok());
  WaitingPush first(&cluster, 0);
  WaitingPush second(&cluster, 1);
  WaitingPush third(&cluster, 2);
  EXPECT_TRUE(absl::IsResourceExhausted(third.answer.Wait().status()));
  EXPECT_FALSE(first.answer.is_there());
  EXPECT_FALSE(second.answer.is_there());
  // Puts the third push into the cut, so that the other pushes release their
  // room.
  CutPoint cut;
  cut.clocks.push_back({{2, 0}, 1});
  std::thread snapshot([&] {
    const auto taken =
        cuts->TakeSnapshot(kView, cut, {}, absl::Seconds(30), nullptr);
    EXPECT_TRUE(taken.ok()) << taken.status();
  });
  absl::Status pushed = absl::ResourceExhaustedError("");
  while (absl::IsResourceExhausted(pushed)) {
    WaitingPush again(&cluster, 2);
    pushed = again.answer.Wait().status();
  }
  EXPECT_TRUE(pushed.ok()) << pushed;
  snapshot.join();
  EXPECT_TRUE(absl::IsResourceExhausted(first.answer.Wait().status()));
  EXPECT_TRUE(absl::IsResourceExhausted(second.answer.Wait().status()));
}

// Tests a push that is repeated before a backup holds its entry.
TEST(HeldPushesTest, ARepeatedPushWaitsForTheEntryOfTheFirst) {
  Cluster::Options options{2, 1, 1, 1, nullptr};
  options.max_held_bytes = kWorkers * sizeof(float);  // one push
  Model model;
  model.tables = {DenseTable("a", {kWorkers}, ConsistencyPolicy::kUnlimited)};
  Cluster cluster(options, model);
  cluster.AwaitBackups();
  ASSERT_TRUE(cluster.Join(0, {0, 100}).ok());
  const auto primary = cluster.PrimaryOf(0);
  primary->peers().Cut(true);
  WaitingPush first(&cluster, 0);
  WaitingPush repeated(&cluster, 0);
  EXPECT_FALSE(repeated.answer.is_there());
  primary->peers().Cut(false);
  const auto counted = first.answer.Wait();
  ASSERT_TRUE(counted.ok()) << counted.status();
  EXPECT_EQ(*counted, Exchange::PushVerdict::kCounted);
  const auto again = repeated.answer.Wait();
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, Exchange::PushVerdict::kDuplicate);
}

// Tests many workers that push at once, while there is room for two pushes.
TEST(HeldPushesTest, TakeNoRoomTwice) {
  constexpr uint32_t kMany = 8;
  constexpr int kRounds = 300;
  Cluster::Options options{2, 1, 1, kMany, nullptr};
  options.max_held_bytes = 2 * sizeof(float);
  Model model;
  model.tables = {DenseTable("a", {1}, ConsistencyPolicy::kUnlimited)};
  Cluster cluster(options, model);
  cluster.AwaitBackups();
  for (uint32_t rank = 0; rank < kMany; ++rank) {
    ASSERT_TRUE(cluster.Join(0, {rank, 100 + rank}).ok());
  }
  tensor::Bundle bundle;
  bundle.tensors.push_back(Floats("a", {1}, {1}));
  ShardCuts* const cuts = cluster.PrimaryOf(0)->shards().Find(0)->cuts();
  const auto calls = cluster.PrimaryOf(0)->shards().CallsOf(0);
  ASSERT_TRUE(calls.ok()) << calls.status();
  for (int round = 0; round < kRounds; ++round) {
    ASSERT_TRUE(cuts->HoldSteps(kView).ok());
    std::atomic<uint32_t> ready{0};
    std::vector<Answer<Exchange::PushVerdict>> answers(kMany);
    std::vector<uint64_t> tickets(kMany);
    std::vector<std::thread> workers;
    for (uint32_t rank = 0; rank < kMany; ++rank) {
      workers.emplace_back([&, rank] {
        for (++ready; ready < kMany;) std::this_thread::yield();
        tickets[rank] = (*calls)->Push(kView, {rank, 100 + rank}, 0, bundle,
                                       answers[rank].callback(), true);
      });
    }
    for (std::thread& each : workers) each.join();
    uint32_t held = 0;
    for (uint32_t rank = 0; rank < kMany; ++rank) {
      held += answers[rank].is_there() ? 0 : 1;
      (*calls)->Cancel(tickets[rank]);
      answers[rank].Wait().IgnoreError();
    }
    ASSERT_LE(held, 2u) << "round " << round;
    ASSERT_GE(held, 1u) << "round " << round;
  }
}

}  // namespace
}  // namespace penstock::ps
