// Tests the step at which a worker begins.

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "ps/client/define.h"
#include "ps/client/worker.h"
#include "tensor_service/tensor.h"
#include "tests/ps/client/cluster.h"

namespace penstock::ps {
namespace {

std::unique_ptr<Worker> JoinAsChief(const Cluster& cluster) {
  Model model;
  model.tables = {DenseSpecOf("one", {2}), DenseSpecOf("other", {2})};
  auto defined = Define(cluster.DefinitionOf(model));
  EXPECT_TRUE(defined.ok()) << defined.status();
  Worker::Options options;
  options.connection = defined->connection;
  auto worker = Worker::Join(std::move(options));
  EXPECT_TRUE(worker.ok()) << worker.status();
  return *std::move(worker);
}

tensor::Bundle Zeros() {
  tensor::Bundle bundle;
  for (const char* name : {"one", "other"}) {
    auto tensor = tensor::Tensor::Allocate(tensor::DType::kF32, {2});
    EXPECT_TRUE(tensor.ok()) << tensor.status();
    for (float& element : *tensor->mutable_flat<float>()) element = 0;
    bundle.tensors.push_back({name, *std::move(tensor)});
  }
  return bundle;
}

// Tests a rank whose last process has died after one of two servers had
// received its push.
TEST(Join, AWorkerBeginsAtOneStepAtAllServers) {
  Cluster cluster(2);
  auto worker = JoinAsChief(cluster);
  ASSERT_TRUE(worker->Initialize(Zeros()).ok());
  const v1::View view = worker->connection().view();
  const WorkerId id = {0, worker->options().incarnation};
  absl::Notification taken;
  cluster.core(0).Push({view.run(), view.epoch()}, id, 0, tensor::Bundle(),
                       [&](const auto& verdict) {
                         EXPECT_TRUE(verdict.ok()) << verdict.status();
                         taken.Notify();
                       });
  taken.WaitForNotification();
  worker = JoinAsChief(cluster);
  EXPECT_EQ(worker->clock(), 1u);
  for (uint64_t step = 1; step < 3; ++step) {
    auto pulled = worker->Pull(step);
    ASSERT_TRUE(pulled.ok()) << pulled.status();
    auto pushed = worker->Push(step, {Zeros(), {}});
    ASSERT_TRUE(pushed.ok() && pushed->counted()) << pushed.status();
  }
  auto pulled = worker->Pull(3);
  ASSERT_TRUE(pulled.ok()) << pulled.status();
  EXPECT_EQ(cluster.core(0).report().version, 3u);
  EXPECT_EQ(cluster.core(1).report().version, 3u);
}

}  // namespace
}  // namespace penstock::ps
