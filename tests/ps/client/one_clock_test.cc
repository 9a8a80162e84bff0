// Tests a worker whose membership ends at one of two servers. The worker's
// pushes must have the same clock at both servers.

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <thread>
#include <utility>

#include "ps/client/define.h"
#include "ps/client/worker.h"
#include "ps/consistency/policy.h"
#include "tensor_service/tensor.h"
#include "tests/ps/client/cluster.h"

namespace penstock::ps {
namespace {

class OneClock : public testing::Test {
 protected:
  std::unique_ptr<Worker> JoinAs(uint32_t rank, int64_t staleness) {
    Model model;
    model.tables = {DenseSpecOf("one", {2}, staleness),
                    DenseSpecOf("other", {2}, staleness)};
    auto defined = Define(cluster_.DefinitionOf(model));
    EXPECT_TRUE(defined.ok()) << defined.status();
    Worker::Options options;
    options.connection = defined->connection;
    options.rank = rank;
    auto worker = Worker::Join(std::move(options));
    EXPECT_TRUE(worker.ok()) << worker.status();
    if (rank == 0) {
      EXPECT_TRUE((*worker)->Initialize(Values(0)).ok());
    }
    return *std::move(worker);
  }

  static tensor::Bundle Values(float value) {
    tensor::Bundle bundle;
    for (const char* name : {"one", "other"}) {
      bundle.tensors.push_back(
          {name, *tensor::Tensor::Of<float>({2}, {value, value})});
    }
    return bundle;
  }

  static void Step(Worker* worker, uint64_t step) {
    const auto pulled = worker->Pull(step);
    ASSERT_TRUE(pulled.ok()) << pulled.status();
    const auto pushed = worker->Push(step, {Values(1), {}});
    ASSERT_TRUE(pushed.ok()) << pushed.status();
    EXPECT_TRUE(pushed->counted()) << step;
  }

  uint64_t ClockAt(size_t server, uint32_t rank) {
    return cluster_.core(server).report().workers.at(rank).clock;
  }

  Cluster cluster_{2, 2};
};

TEST_F(OneClock, AStepThatOneServerHasEndedIsForgoneAtTheOther) {
  auto first = JoinAs(0, 0);
  auto second = JoinAs(1, 0);
  ASSERT_TRUE(first->Pull(0).ok());
  cluster_.core(1).Lost({1, second->options().incarnation});
  ASSERT_TRUE(first->Push(0, {Values(1), {}}).ok());
  // Waits until server 1 has ended step 0 without the second worker. Server 0
  // still waits for that worker.
  while (cluster_.core(1).report().version < 1) std::this_thread::yield();
  Step(second.get(), 0);
  EXPECT_EQ(ClockAt(0, 1), 2u);
  EXPECT_EQ(ClockAt(1, 1), 2u);
  for (uint64_t step = 1; step < 4; ++step) {
    Step(first.get(), step);
    Step(second.get(), step);
    EXPECT_EQ(ClockAt(0, 1), step + 2);
    EXPECT_EQ(ClockAt(1, 1), step + 2);
  }
}

// Tests a worker that heartbeats have made a member again. Heartbeats do not
// carry the clock, so the worker learns its clock by a pull.
TEST_F(OneClock, AWorkerLearnsTheClockOfItsNewMembershipByAPull) {
  auto first = JoinAs(0, 3);
  auto second = JoinAs(1, 3);
  const WorkerId id = {1, second->options().incarnation};
  for (uint64_t step = 0; step < 3; ++step) Step(first.get(), step);
  cluster_.core(1).Lost(id);
  const uint64_t run = first->connection().run();
  ASSERT_TRUE(cluster_.core(1).Heartbeat(run, id).ok());
  ASSERT_EQ(ClockAt(1, 1), 3u);
  for (uint64_t step = 0; step < 3; ++step) {
    Step(second.get(), step);
    EXPECT_EQ(ClockAt(0, 1), ClockAt(1, 1));
  }
}

TEST_F(OneClock, PullsWithOneAnswerAreFollowedByPushesWithTwoClocks) {
  auto first = JoinAs(0, ConsistencyPolicy::kUnlimited);
  auto second = JoinAs(1, ConsistencyPolicy::kUnlimited);
  const WorkerId id = {1, second->options().incarnation};
  for (uint64_t step = 0; step < 3; ++step) Step(first.get(), step);
  const uint64_t run = first->connection().run();
  for (const size_t server : {0, 1}) {
    cluster_.core(server).Lost(id);
    ASSERT_TRUE(cluster_.core(server).Heartbeat(run, id).ok());
    ASSERT_EQ(ClockAt(server, 1), 3u);
  }
  for (uint64_t step = 0; step < 2; ++step) {
    ASSERT_TRUE(second->Pull(step).ok());
  }
  for (uint64_t step = 0; step < 2; ++step) {
    const auto pushed = second->Push(step, {Values(1), {}});
    ASSERT_TRUE(pushed.ok()) << pushed.status();
    EXPECT_TRUE(pushed->counted()) << step;
  }
  EXPECT_EQ(ClockAt(0, 1), 5u);
}

}  // namespace
}  // namespace penstock::ps
