// Tests connections that break at every point: each acknowledged push counts
// once.

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "ps/client/reader.h"
#include "ps/client/worker.h"
#include "tests/ps/client/cluster.h"
#include "tests/transport/rpc/cutting_proxy.h"

namespace penstock::ps {
namespace {

using tensor::Tensor;

// The smallest number of bytes after which a connection breaks. Enough for a
// greeting, a join, a push and a pull, so that each connection makes some
// progress.
constexpr size_t kShortest = 4000;
// The number of bytes by which each connection is longer than the previous one.
// After kMore more bytes, the lengths start again. Connections therefore break
// everywhere in a step of about 1,000 bytes.
constexpr size_t kStep = 53;
constexpr size_t kMore = 1200;
constexpr size_t kFirst = 20000;  // the first connection also defines the model
constexpr int kSteps = 200;

Tensor Ones(tensor::Shape shape) {
  Tensor tensor = *Tensor::Allocate(tensor::DType::kF32, std::move(shape));
  const absl::Span<float> elements = *tensor.mutable_flat<float>();
  for (float& element : elements) element = 1;
  return tensor;
}

std::vector<float> Elements(const Tensor& tensor) {
  std::vector<float> elements(tensor.num_elements());
  std::memcpy(elements.data(), tensor.bytes().data(), tensor.byte_size());
  return elements;
}

class CutTest : public testing::TestWithParam<int64_t> {};

Definition DefinitionThrough(const Model& model, Cluster* cluster,
                             rpc::CuttingProxy (&proxies)[2]) {
  Definition definition = cluster->DefinitionOf(model);
  for (size_t i = 0; i < 2; ++i) {
    proxies[i].Set(cluster->port(i), kFirst);
    definition.servers[i] = cluster->ChannelTo(proxies[i].port());
  }
  return definition;
}

// Expects that each value of the tables "a", "b" and "rows" is -kSteps.
void ExpectAllSteps(Cluster* cluster, const PullSpec& spec,
                    const std::vector<uint64_t>& ids) {
  TrainingConnection::Options open;
  open.servers = cluster->Channels();
  Reader reader(*TrainingConnection::Open(open));
  auto pulled = reader.Pull(0, spec, absl::Minutes(1));
  ASSERT_TRUE(pulled.ok()) << pulled.status();
  const Layout& layout = reader.connection().layout();
  for (const char* name : {"a", "b"}) {
    const PlacedDense& table = layout.tables()[*layout.Find(name)];
    const uint32_t server = layout.parts()[table.pieces[0].part].server;
    for (const float element : Elements(*pulled->Dense(name))) {
      ASSERT_EQ(element, -kSteps) << name << " at " << server;
    }
  }
  const PlacedTable& rows = *reader.connection().placement().Find("rows");
  for (size_t i = 0; i < ids.size(); ++i) {
    EXPECT_EQ(Elements(pulled->Rows(0))[2 * i], -kSteps)
        << "at " << rows.ServerOfId(ids[i]);
  }
}

// Tests SGD of rate 1 with gradients of 1, so that each value counts the
// applied pushes.
TEST_P(CutTest, EachAcknowledgedPushIsAppliedOnce) {
  Cluster cluster(2);
  rpc::CuttingProxy proxies[2];
  Model model{{DenseSpecOf("a", {30}, GetParam()),
               DenseSpecOf("b", {20}, GetParam()),
               SparseSpecOf("rows", 2, GetParam())}};
  auto defined = Define(DefinitionThrough(model, &cluster, proxies));
  ASSERT_TRUE(defined.ok()) << defined.status();
  Worker::Options options;
  options.connection = defined->connection;
  auto worker = *Worker::Join(std::move(options));
  tensor::Bundle zeros{
      {{"a", *Tensor::Of<float>({30}, std::vector<float>(30))},
       {"b", *Tensor::Of<float>({20}, std::vector<float>(20))}}};
  ASSERT_TRUE(worker->Initialize(zeros).ok());

  const std::vector<uint64_t> ids{1, 2, 3, 4, 5, 6, 7, 8};
  std::vector<float> counted(2);
  PullSpec spec;
  spec.rows = {{"rows", ids}};
  for (uint64_t step = 0; step < kSteps; ++step) {
    for (size_t i = 0; i < 2; ++i) {
      proxies[i].Set(cluster.port(i), kShortest + step * kStep % kMore);
    }
    auto pulled = worker->Pull(step, spec);
    ASSERT_TRUE(pulled.ok()) << pulled.status();
    StepGradients gradients{{{{"a", Ones({30})}, {"b", Ones({20})}}},
                            {{"rows", ids, Ones({8, 2})}}};
    auto pushed = worker->Push(step, gradients);
    ASSERT_TRUE(pushed.ok()) << pushed.status();
    for (size_t i = 0; i < 2; ++i) {
      counted[i] += pushed->verdicts[i] == PushVerdict::kCounted ? 1 : 0;
    }
  }
  worker->Leave();

  // Expects that no step is skipped, because there are no other workers.
  for (size_t i = 0; i < 2; ++i) EXPECT_EQ(counted[i], kSteps);
  // Expects so many connections that they have broken in the middle of calls.
  for (rpc::CuttingProxy& proxy : proxies) EXPECT_GT(proxy.connections(), 25u);
  ExpectAllSteps(&cluster, spec, ids);
}

INSTANTIATE_TEST_SUITE_P(Stalenesses, CutTest,
                         testing::Values(0, 1, ConsistencyPolicy::kUnlimited));

}  // namespace
}  // namespace penstock::ps
