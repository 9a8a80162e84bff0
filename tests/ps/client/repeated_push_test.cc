// A worker that pushes a step again.

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "ps/client/awaited.h"
#include "ps/client/worker.h"
#include "tests/ps/client/cluster.h"

namespace penstock::ps {
namespace {

tensor::Bundle Values(float value) {
  return {
      {{"w", *tensor::Tensor::Of<float>({4}, std::vector<float>(4, value))}}};
}

// As after an error that does not say whether the push has counted. The first
// two wait in the queue, one behind the other.
TEST(RepeatedPushTest, OfAStepCountsOnce) {
  for (const int64_t staleness : {int64_t{0}, ConsistencyPolicy::kUnlimited}) {
    SCOPED_TRACE(staleness);
    Cluster cluster(2);
    auto defined =
        Define(cluster.DefinitionOf(Model{{DenseSpecOf("w", {4}, staleness)}}));
    ASSERT_TRUE(defined.ok()) << defined.status();
    Worker::Options options;
    options.connection = defined->connection;
    auto worker = *Worker::Join(std::move(options));
    ASSERT_TRUE(worker->Initialize(Values(10)).ok());
    for (uint64_t step = 0; step < 3; ++step) {
      Awaited<absl::StatusOr<Pushed>> first;
      worker->StartPush(step, {Values(1), {}}, first.Callback());
      const auto again = worker->Push(step, {Values(1), {}});
      ASSERT_TRUE(first.Wait().ok());
      ASSERT_TRUE(again.ok()) << again.status();
      EXPECT_EQ(again->verdicts,
                std::vector<PushVerdict>(2, PushVerdict::kDuplicate));
      const auto third = worker->Push(step, {Values(1), {}});
      ASSERT_TRUE(third.ok()) << third.status();
      EXPECT_FALSE(third->counted());
    }
    for (size_t server = 0; server < 2; ++server) {
      EXPECT_EQ(cluster.core(server).report().pushes.counted, 3u);
    }
    const auto pulled = worker->Pull(3);
    ASSERT_TRUE(pulled.ok()) << pulled.status();
    EXPECT_EQ(pulled->clock(), 3u);
    EXPECT_EQ((*pulled->Dense("w")->flat<float>())[3], 7);
    worker->Leave();
  }
}

// The values are those that it was computed on, and nobody is waited for.
TEST(RepeatedPushTest, AStepThatWasRefusedMayBePulledAgain) {
  for (const int64_t staleness : {int64_t{0}, ConsistencyPolicy::kUnlimited}) {
    SCOPED_TRACE(staleness);
    Cluster cluster(1);
    auto defined =
        Define(cluster.DefinitionOf(Model{{DenseSpecOf("w", {4}, staleness)}}));
    ASSERT_TRUE(defined.ok()) << defined.status();
    Worker::Options options;
    options.connection = defined->connection;
    options.pull_timeout = absl::Seconds(30);
    auto worker = *Worker::Join(std::move(options));
    ASSERT_TRUE(worker->Initialize(Values(10)).ok());
    for (uint64_t step = 0; step < 3; ++step) {
      ASSERT_TRUE(worker->Pull(step).ok());
      const auto refused = worker->Push(step, {Values(std::nanf("")), {}});
      ASSERT_TRUE(absl::IsInvalidArgument(refused.status()));
      const auto pulled = worker->Pull(step);
      ASSERT_TRUE(pulled.ok()) << pulled.status();
      EXPECT_EQ(pulled->clock(), step);
      const auto pushed = worker->Push(step, {Values(1), {}});
      ASSERT_TRUE(pushed.ok()) << pushed.status();
      EXPECT_TRUE(pushed->counted());
    }
    const auto pulled = worker->Pull(3);
    ASSERT_TRUE(pulled.ok()) << pulled.status();
    if (staleness == 0) {
      EXPECT_EQ((*pulled->Dense("w")->flat<float>())[3], 7);
    }
    EXPECT_EQ(cluster.core(0).report().pushes.counted, 3u);
    worker->Leave();
  }
}

}  // namespace
}  // namespace penstock::ps
