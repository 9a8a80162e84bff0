// Workers and servers of one process, over real connections.

#include "ps/client/worker.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "ps/client/reader.h"
#include "tests/ps/client/cluster.h"

namespace penstock::ps {
namespace {

using tensor::Bundle;
using tensor::Tensor;

constexpr int64_t kBig = 2 << 20;  // 8 MiB: split between servers

Tensor Filled(tensor::Shape shape, float value) {
  Tensor tensor = *Tensor::Allocate(tensor::DType::kF32, std::move(shape));
  absl::Span<float> elements = *tensor.mutable_flat<float>();
  std::fill(elements.begin(), elements.end(), value);
  return tensor;
}

std::vector<float> Elements(const Tensor& tensor) {
  std::vector<float> elements(tensor.num_elements());
  std::memcpy(elements.data(), tensor.bytes().data(), tensor.byte_size());
  return elements;
}

// One that is split, two that share a pack, one alone, and rows.
Model TestModel(int64_t staleness = 0) {
  Model model;
  model.tables = {DenseSpecOf("big", {kBig / 4, 4}, staleness),
                  DenseSpecOf("bias", {3}, staleness),
                  DenseSpecOf("scale", {}, staleness),
                  DenseSpecOf("kernel", {100, 100}, staleness),
                  SparseSpecOf("rows", 2, staleness)};
  return model;
}

Bundle Values(float value) {
  Bundle bundle;
  bundle.tensors = {{"big", Filled({kBig / 4, 4}, value)},
                    {"bias", Filled({3}, value)},
                    {"scale", Filled({}, value)},
                    {"kernel", Filled({100, 100}, value)}};
  return bundle;
}

class WorkerTest : public testing::Test {
 protected:
  std::unique_ptr<Worker> Chief(const Model& model, float value) {
    auto defined = Define(cluster_.DefinitionOf(model));
    EXPECT_TRUE(defined.ok()) << defined.status();
    Worker::Options options;
    options.connection = defined->connection;
    auto worker = Worker::Join(std::move(options));
    EXPECT_TRUE(worker.ok()) << worker.status();
    EXPECT_TRUE(defined->wants_values);
    absl::Status status = (*worker)->Initialize(Values(value));
    EXPECT_TRUE(status.ok()) << status;
    return *std::move(worker);
  }

  static void ExpectAll(const Pulled& pulled, float value) {
    for (const tensor::NamedTensor& named : pulled.AllDense().tensors) {
      for (const float element : Elements(named.tensor)) {
        ASSERT_EQ(element, value) << named.name;
      }
    }
  }

  Cluster cluster_{2};
};

TEST_F(WorkerTest, StepsOfAllTablesGoThereAndBack) {
  auto worker = Chief(TestModel(), 10);
  PullSpec spec;
  spec.rows = {{"rows", {7, 9, 7}}};
  for (uint64_t step = 0; step < 3; ++step) {
    auto pulled = worker->Pull(step, spec);
    ASSERT_TRUE(pulled.ok()) << pulled.status();
    EXPECT_EQ(pulled->clock(), step);
    ExpectAll(*pulled, 10.0f - 2 * step);
    // 7 is twice in each gradient.
    const float moved = -3.0f * step;
    EXPECT_EQ(Elements(pulled->Rows(0)),
              (std::vector<float>{2 * moved, 2 * moved, moved, moved, 2 * moved,
                                  2 * moved}));
    StepGradients gradients{Values(2),
                            {{"rows", {7, 9, 7}, Filled({3, 2}, 3)}}};
    auto pushed = worker->Push(step, gradients);
    ASSERT_TRUE(pushed.ok()) << pushed.status();
    EXPECT_TRUE(pushed->counted());
  }
  worker->Leave();
  EXPECT_EQ(cluster_.core(0).report().workers_lost, 0u);
}

}  // namespace
}  // namespace penstock::ps
