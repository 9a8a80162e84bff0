// Tests training over each of Penstock's fabrics within one host, with the
// memory pool.

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "penstock/allocator.h"
#include "penstock/penstock.h"
#include "ps/client/worker.h"
#include "tensor_service/pool_allocator.h"
#include "tests/ps/client/cluster.h"

namespace penstock::ps {
namespace {

using tensor::Tensor;

constexpr int64_t kRows = 1 << 20;  // 8 MiB: split between servers

class TransportTest : public testing::TestWithParam<Fabric> {
 protected:
  static void SetUpTestSuite() {
    tensor::SetDefaultAllocator(tensor::PoolAllocator<penstock::Allocator>());
  }
  static void TearDownTestSuite() { tensor::SetDefaultAllocator(nullptr); }

  static Transport Over(Fabric fabric) {
    Options options;
    options.policy = Policy::kRequire;
    options.fabrics = std::vector<Fabric>{fabric};
    Transport transport;
    transport.enable = [options](grpc::ServerBuilder* builder) {
      Enable(builder, options);
    };
    transport.credentials = [options] {
      return Credentials(grpc::InsecureChannelCredentials(), options);
    };
    return transport;
  }

  static tensor::Bundle Filled(float value) {
    tensor::Bundle bundle;
    for (const auto& [name, rows] :
         {std::pair<const char*, int64_t>("big", kRows),
          {"small", 10},
          {"tiny", 3}}) {
      Tensor tensor = *Tensor::Allocate(tensor::DType::kF32, {rows, 2});
      const absl::Span<float> elements = *tensor.mutable_flat<float>();
      for (float& element : elements) element = value;
      bundle.tensors.push_back({name, std::move(tensor)});
    }
    return bundle;
  }
};

TEST_P(TransportTest, ATrainingGoesOverIt) {
  Cluster cluster(2, 1, Over(GetParam()));
  Model model{{DenseSpecOf("big", {kRows, 2}), DenseSpecOf("small", {10, 2}),
               DenseSpecOf("tiny", {3, 2}), SparseSpecOf("rows", 64)}};
  auto defined = Define(cluster.DefinitionOf(model));
  ASSERT_TRUE(defined.ok()) << defined.status();
  Worker::Options options;
  options.connection = defined->connection;
  auto joined = Worker::Join(std::move(options));
  ASSERT_TRUE(joined.ok()) << joined.status();
  std::unique_ptr<Worker> worker = *std::move(joined);
  ASSERT_TRUE(worker->Initialize(Filled(10)).ok());
  PullSpec spec;
  spec.rows = {{"rows", {}}};
  for (uint64_t id = 0; id < 500; ++id) spec.rows[0].ids.push_back(id % 300);
  for (uint64_t step = 0; step < 4; ++step) {
    auto pulled = worker->Pull(step, spec);
    ASSERT_TRUE(pulled.ok()) << pulled.status();
    for (const tensor::NamedTensor& named : pulled->AllDense().tensors) {
      const Tensor aligned = *named.tensor.Aligned();
      const absl::Span<const float> aligned_elements = *aligned.flat<float>();
      for (const float element : aligned_elements) {
        ASSERT_EQ(element, 10.0f - step) << named.name;
      }
    }
    Tensor ones = *Tensor::Allocate(tensor::DType::kF32, {500, 64});
    const absl::Span<float> ones_elements = *ones.mutable_flat<float>();
    for (float& element : ones_elements) element = 1;
    const Tensor rows = *pulled->Rows(0).Aligned();
    const absl::Span<const float> elements = *rows.flat<float>();
    for (size_t i = 0; i < elements.size(); ++i) {
      // Expects twice the change for the first 200 ids, which occur twice in
      // the push.
      const bool is_twice = spec.rows[0].ids[i / 64] < 200;
      ASSERT_EQ(elements[i], -1.0f * step * (is_twice ? 2 : 1)) << i;
    }
    auto pushed =
        worker->Push(step, {Filled(1), {{"rows", spec.rows[0].ids, ones}}});
    ASSERT_TRUE(pushed.ok() && pushed->counted()) << pushed.status();
  }
  worker->Leave();
}

INSTANTIATE_TEST_SUITE_P(Fabrics, TransportTest,
                         testing::Values(Fabric::kShm, Fabric::kTcp),
                         [](const testing::TestParamInfo<Fabric>& info) {
                           return info.param == Fabric::kShm ? "Shm" : "Tcp";
                         });

}  // namespace
}  // namespace penstock::ps
