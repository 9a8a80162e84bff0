// Tests a worker that pushes a step again.

#include <gmock/gmock.h>
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

using testing::HasSubstr;

tensor::Bundle Values(float value) {
  return {
      {{"w", *tensor::Tensor::Of<float>({4}, std::vector<float>(4, value))}}};
}

// Tests pushes that are repeated as after an error with an unknown outcome. The
// first two pushes wait together in the queue.
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

// Tests that a push of any other step is refused. If a step were skipped,
// servers would wait for it until the end of the training. An old step would
// count as a new step.
TEST(RepeatedPushTest, OnlyTheNextStepAndTheLastOneAreTaken) {
  Cluster cluster(2);
  auto defined =
      Define(cluster.DefinitionOf(Model{{DenseSpecOf("w", {4}, 0)}}));
  ASSERT_TRUE(defined.ok()) << defined.status();
  Worker::Options options;
  options.connection = defined->connection;
  auto worker = *Worker::Join(std::move(options));
  ASSERT_TRUE(worker->Initialize(Values(10)).ok());
  const auto refusal = [&](uint64_t step) {
    return worker->Push(step, {Values(1), {}}).status();
  };
  EXPECT_THAT(refusal(1).message(), HasSubstr("step 0 is next"));
  for (uint64_t step = 0; step < 3; ++step) {
    ASSERT_TRUE(worker->Push(step, {Values(1), {}}).ok());
  }
  for (const uint64_t step : {uint64_t{0}, uint64_t{1}, uint64_t{4},
                              uint64_t{8}, UINT64_MAX - 1, UINT64_MAX}) {
    SCOPED_TRACE(step);
    EXPECT_TRUE(absl::IsInvalidArgument(refusal(step)));
    EXPECT_THAT(refusal(step).message(), HasSubstr("step 3 is next"));
  }
  // Expects that the refused pushes have not changed the values, and that the
  // worker can continue.
  EXPECT_EQ((*worker->Pull(3)->Dense("w")->flat<float>())[3], 7);
  EXPECT_TRUE(worker->Push(3, {Values(1), {}})->counted());
  // Starts a new worker of the rank, which begins at step 4.
  Worker::Options again;
  again.connection = defined->connection;
  worker = *Worker::Join(std::move(again));
  EXPECT_EQ(worker->clock(), 4u);
  EXPECT_THAT(refusal(3).message(), HasSubstr("step 4 is next, which clock()"));
  EXPECT_TRUE(worker->Push(4, {Values(1), {}})->counted());
  worker->Leave();
}

// Tests gradients that one of two servers would refuse. No other server may
// apply its part of the step.
TEST(RepeatedPushTest, GradientsThatOneServerWouldRefuseReachNone) {
  Cluster cluster(2);
  auto defined = Define(cluster.DefinitionOf(
      Model{{DenseSpecOf("w", {4}, 0), DenseSpecOf("x", {4}, 0),
             SparseSpecOf("rows", 2, 0)}}));
  ASSERT_TRUE(defined.ok()) << defined.status();
  Worker::Options options;
  options.connection = defined->connection;
  auto worker = *Worker::Join(std::move(options));
  const auto both = [](float w, float x) {
    tensor::Bundle bundle = Values(w);
    bundle.tensors.push_back({"x", Values(x).tensors[0].tensor});
    return bundle;
  };
  ASSERT_TRUE(worker->Initialize(both(10, 10)).ok());
  const float nan = std::nanf("");
  for (const StepGradients& gradients :
       {StepGradients{both(1, nan), {}}, StepGradients{both(-1e19F, 1), {}},
        StepGradients{
            both(1, 1),
            {{"rows",
              {1, 2},
              *tensor::Tensor::Of<float>({2, 2}, {1, 2, 3, nan})}}}}) {
    const auto refused = worker->Push(0, gradients);
    ASSERT_TRUE(absl::IsInvalidArgument(refused.status()));
    EXPECT_THAT(refused.status().message(), HasSubstr("clip the gradients"));
  }
  for (size_t server = 0; server < 2; ++server) {
    EXPECT_EQ(cluster.core(server).report().pushes.counted, 0u);
  }
  EXPECT_TRUE(worker->Push(0, {both(1, 1), {}})->counted());
  worker->Leave();
}

// Tests a repeated pull, which must return the same values as before, without
// waiting for other workers.
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
