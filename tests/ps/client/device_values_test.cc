// Tests gradients and initial values on a GPU. The client must not read them.

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "ps/client/worker.h"
#include "tests/ps/client/cluster.h"

namespace penstock::ps {
namespace {

using tensor::DType;
using tensor::Tensor;

// Returns a device tensor at an address where a read would crash the test.
Tensor There(tensor::Shape shape) {
  const size_t bytes = *tensor::ByteSize(DType::kF32, shape);
  return *Tensor::FromBuffer(
      DType::kF32, std::move(shape),
      tensor::Buffer::WrapDevice({tensor::Device::Kind::kCuda, 0}, 64, bytes,
                                 /*writable=*/false, nullptr));
}

Tensor Here(tensor::Shape shape) {
  Tensor tensor = *Tensor::Allocate(DType::kF32, std::move(shape));
  const absl::Span<float> elements = *tensor.mutable_flat<float>();
  std::fill(elements.begin(), elements.end(), 1);
  return tensor;
}

// Returns a bundle of two tables, which share a pack.
tensor::Bundle Both(const Tensor& a, const Tensor& b) {
  tensor::Bundle bundle;
  bundle.tensors = {{"a", a}, {"b", b}};
  return bundle;
}

TEST(DeviceValuesTest, AreRefusedByNameAndTheNextPushIsGood) {
  Cluster cluster(2);
  Model model;
  model.tables = {DenseSpecOf("a", {30}, 0), DenseSpecOf("b", {20}, 0),
                  SparseSpecOf("rows", 2, 0)};
  auto defined = Define(cluster.DefinitionOf(model));
  ASSERT_TRUE(defined.ok()) << defined.status();
  Worker::Options options;
  options.connection = defined->connection;
  auto worker = Worker::Join(std::move(options));
  ASSERT_TRUE(worker.ok()) << worker.status();
  const Tensor a = Here({30});
  const Tensor b = Here({20});
  const absl::Status first = (*worker)->Initialize(Both(a, There({20})));
  ASSERT_TRUE((*worker)->Initialize(Both(a, b)).ok());
  for (const absl::Status& status :
       {first, (*worker)->Push(0, {Both(There({30}), b), {}}).status(),
        (*worker)->Push(0, {{}, {{"rows", {1, 1}, There({2, 2})}}}).status(),
        (*worker)->Push(0, {{}, {{"rows", {1, 2}, There({2, 2})}}}).status()}) {
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), "table ")) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), "ToHost()")) << status;
  }
  const auto pushed = (*worker)->Push(0, {Both(a, b), {}});
  EXPECT_TRUE(pushed.ok()) << pushed.status();
}

}  // namespace
}  // namespace penstock::ps
