// A fixture with servers of this process, over gRPC, that write checkpoints to
// one folder.

#ifndef PENSTOCK_TESTS_PS_SERVICE_CHECKPOINT_FIXTURE_H_
#define PENSTOCK_TESTS_PS_SERVICE_CHECKPOINT_FIXTURE_H_

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "ps/checkpoint/posix_files.h"
#include "ps/client/checkpoint.h"
#include "ps/client/define.h"
#include "ps/client/worker.h"
#include "ps/wire/ps.grpc.pb.h"
#include "tests/ps/service/node.h"

namespace penstock::ps {

inline tensor::Tensor Filled(const tensor::Shape& shape, float value) {
  auto tensor = *tensor::Tensor::Allocate(tensor::DType::kF32, shape);
  const absl::Span<float> elements = *tensor.mutable_flat<float>();
  std::fill(elements.begin(), elements.end(), value);
  return tensor;
}

// Returns a model with a table of `rows_of_big` rows, a scalar, and a sparse
// table, all with Adagrad and `staleness`.
inline Model TestModel(int64_t rows_of_big, int64_t staleness) {
  Model model;
  model.tables.resize(3);
  model.tables[0].name = "big";
  model.tables[0].rows = DenseSpec{tensor::DType::kF32, {rows_of_big, 1000}};
  model.tables[1].name = "scalar";
  model.tables[1].rows = DenseSpec{tensor::DType::kF32, {}};
  model.tables[2].name = "rows";
  SparseSpec rows;
  rows.dim = 2;
  model.tables[2].rows = rows;
  for (TableSpec& table : model.tables) {
    table.optimizer.rule = optim::Rule::kAdagrad;
    table.staleness = staleness;
  }
  return model;
}

class CheckpointServiceTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = testing::TempDir() + "/checkpoints-XXXXXX";
    ASSERT_NE(mkdtemp(&root_[0]), nullptr);
    files_ = *checkpoint::OpenFolder(root_);
  }
  void TearDown() override {
    worker_ = nullptr;
    nodes_.clear();
    std::filesystem::remove_all(root_);
  }

  // Replaces all servers by `servers` new ones, and starts their chief.
  void Start(size_t servers, const Node::Options& options) {
    worker_ = nullptr;
    nodes_.clear();
    Definition definition;
    for (size_t i = 0; i < servers; ++i) {
      nodes_.push_back(std::make_unique<Node>(options));
      definition.servers.push_back(nodes_.back()->Connect());
      definition.addresses.push_back(nodes_.back()->address());
    }
    definition.model = TestModel(rows_of_big_, staleness_);
    auto defined = Define(definition);
    ASSERT_TRUE(defined.ok()) << defined.status();
    defined_ = *std::move(defined);
    Worker::Options worker;
    worker.connection = defined_.connection;
    auto joined = Worker::Join(worker);
    ASSERT_TRUE(joined.ok()) << joined.status();
    worker_ = *std::move(joined);
    if (!defined_.wants_values) return;
    tensor::Bundle first;
    first.tensors = {{"big", Filled({rows_of_big_, 1000}, 1)},
                     {"scalar", Filled({}, 2)}};
    const absl::Status taken = worker_->Initialize(first);
    ASSERT_TRUE(taken.ok()) << taken;
  }

  void Step(uint64_t step) {
    StepGradients gradients;
    const auto x = static_cast<float>(step + 1);
    gradients.dense.tensors = {{"big", Filled({rows_of_big_, 1000}, x)},
                               {"scalar", Filled({}, -x)}};
    gradients.rows = {{"rows", {step, 77}, Filled({2, 2}, x)}};
    const auto pushed = worker_->Push(step, gradients);
    ASSERT_TRUE(pushed.ok()) << pushed.status();
  }

  // Returns all values at the beginning of step `clock`, as bytes.
  std::string ValuesAt(uint64_t clock) {
    PullSpec spec;
    spec.rows = {{"rows", {0, 1, 2, 3, 4, 77}}};
    const auto pulled = worker_->Pull(clock, spec);
    EXPECT_TRUE(pulled.ok()) << pulled.status();
    if (!pulled.ok()) return "";
    return absl::StrCat(pulled->Dense("big")->bytes(),
                        pulled->Dense("scalar")->bytes(),
                        pulled->Rows(0).bytes());
  }

  absl::StatusOr<CheckpointResult> Take(bool incremental = false) {
    CheckpointOptions options;
    options.incremental = incremental;
    options.timeout = absl::Minutes(1);
    return TakeCheckpoint(*defined_.connection, options);
  }

  v1::View view() const { return defined_.connection->view(); }
  std::unique_ptr<v1::ParameterServer::Stub> Stub(size_t server) {
    return v1::ParameterServer::NewStub(nodes_[server]->Connect());
  }
  v1::CheckpointAttempt Begin() {
    v1::BeginCheckpointRequest request;
    *request.mutable_view() = view();
    for (const auto& node : nodes_) {
      for (const WorkerReport& each : node->core().report().workers) {
        v1::WorkerClock* const clock = request.add_clocks();
        clock->mutable_worker()->set_rank(each.rank);
        clock->set_clock(each.pushed);
      }
    }
    grpc::ClientContext context;
    v1::CheckpointAttempt attempt;
    const auto status = Stub(0)->BeginCheckpoint(&context, request, &attempt);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return attempt;
  }
  grpc::Status WriteShard(size_t server, const v1::CheckpointAttempt& attempt,
                          uint64_t version, absl::Duration timeout,
                          v1::ShardInfo* shard = nullptr) {
    v1::WriteShardRequest request;
    *request.mutable_view() = view();
    *request.mutable_attempt() = attempt;
    request.mutable_cut()->set_version(version);
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + timeout));
    v1::ShardInfo unused;
    if (shard == nullptr) shard = &unused;
    return Stub(server)->WriteShard(&context, request, shard);
  }
  // Writes all shards of a checkpoint, and returns the request that commits it.
  v1::CommitCheckpointRequest WriteShards(const v1::CheckpointAttempt& attempt,
                                          uint64_t version) {
    v1::CommitCheckpointRequest request;
    *request.mutable_view() = view();
    *request.mutable_attempt() = attempt;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const auto status = WriteShard(i, attempt, version, absl::Minutes(1),
                                     request.add_shards());
      EXPECT_TRUE(status.ok()) << status.error_message();
    }
    return request;
  }
  void Commit(const v1::CommitCheckpointRequest& request) {
    grpc::ClientContext context;
    v1::CommitCheckpointReply reply;
    const auto status = Stub(0)->CommitCheckpoint(&context, request, &reply);
    ASSERT_TRUE(status.ok()) << status.error_message();
  }
  Node::Options WithFolder() {
    Node::Options options;
    options.files = files_.get();
    return options;
  }

  int64_t rows_of_big_ = 2000;  // 8 MB, which are split
  int64_t staleness_ = 0;
  std::string root_;
  std::unique_ptr<checkpoint::Files> files_;
  std::vector<std::unique_ptr<Node>> nodes_;
  Defined defined_;
  std::unique_ptr<Worker> worker_;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_TESTS_PS_SERVICE_CHECKPOINT_FIXTURE_H_
