// A fixture with servers of this process that can be restarted, and workers
// that train there.

#ifndef PENSTOCK_TESTS_PS_CLIENT_RESTARTABLE_H_
#define PENSTOCK_TESTS_PS_CLIENT_RESTARTABLE_H_

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "ps/checkpoint/posix_files.h"
#include "ps/client/checkpoint.h"
#include "ps/client/define.h"
#include "ps/client/reattach.h"
#include "tests/ps/service/node.h"

namespace penstock::ps {

using WorkerPtr = std::unique_ptr<Worker>;

inline constexpr int64_t kElements =
    8192;                           // too many for two tables in one pack
inline constexpr uint64_t kId = 7;  // of a row

inline tensor::Tensor Filled(tensor::Shape shape, size_t elements,
                             float value) {
  return *tensor::Tensor::Of<float>(std::move(shape),
                                    std::vector<float>(elements, value));
}

inline float LastOf(const tensor::Tensor& tensor) {
  float last = 0;
  const auto bytes = tensor.bytes();
  std::memcpy(&last, bytes.data() + bytes.size() - sizeof(last), sizeof(last));
  return last;
}

// Returns a model with one dense table for each of two servers, and rows.
inline Model ModelWith(int64_t staleness) {
  Model model;
  for (const char* name : {"a", "b"}) {
    TableSpec table;
    table.name = name;
    table.rows = DenseSpec{tensor::DType::kF32, {kElements}};
    table.staleness = staleness;
    table.optimizer.schedule.learning_rate = 1;
    model.tables.push_back(table);
  }
  TableSpec rows = model.tables[0];
  rows.name = "rows";
  SparseSpec sparse;
  sparse.dim = 1;
  rows.rows = sparse;
  model.tables.push_back(rows);
  return model;
}

// A folder of checkpoints, which is removed at the end.
class Folder {
 public:
  Folder() : root_(testing::TempDir() + "/reattach-XXXXXX") {
    if (mkdtemp(&root_[0]) != nullptr) files_ = *checkpoint::OpenFolder(root_);
  }
  ~Folder() {
    files_ = nullptr;
    std::filesystem::remove_all(root_);
  }
  checkpoint::Files* files() { return files_.get(); }

 private:
  std::string root_;
  std::unique_ptr<checkpoint::Files> files_;
};

// Two servers with one folder of checkpoints. Each value of the model counts
// the pushes that were applied to it. The parameter is the staleness.
class ReattachTest : public testing::TestWithParam<int64_t> {
 protected:
  void TearDown() override { Reset(); }

  // Ends all servers and workers, and begins with an empty folder.
  void Reset() {
    workers_.clear();
    nodes_.clear();
    folder_ = std::make_unique<Folder>();
  }

  // Starts server `at`, which keeps its port.
  void StartNode(size_t at, bool restore = true, Folder* folder = nullptr) {
    Node::Options options;
    options.files = (folder == nullptr ? folder_.get() : folder)->files();
    options.restore = restore;
    if (at == nodes_.size()) {
      nodes_.emplace_back();
    } else {
      options.port = nodes_[at]->port();
      nodes_[at] = nullptr;
    }
    options.workers = workers_expected_;
    nodes_[at] = std::make_unique<Node>(options);
  }
  void StartNodes(bool restore = true) {
    for (const size_t at : {0, 1}) StartNode(at, restore);
  }

  Definition DefinitionOf() const {
    Definition definition;
    for (const auto& node : nodes_) {
      definition.servers.push_back(node->Connect());
      definition.addresses.push_back(node->address());
    }
    definition.model = ModelWith(GetParam());
    return definition;
  }
  // Adds the worker of the next rank.
  void AddWorker() {
    const auto defined = Define(DefinitionOf());
    ASSERT_TRUE(defined.ok()) << defined.status();
    Worker::Options options;
    options.connection = defined->connection;
    options.rank = static_cast<uint32_t>(workers_.size());
    options.pull_timeout = absl::Minutes(1);
    options.push_timeout = absl::Minutes(1);
    auto worker = Worker::Join(options);
    ASSERT_TRUE(worker.ok()) << worker.status();
    workers_.push_back(*std::move(worker));
    if (!defined->wants_values) return;
    const auto zeros = Filled({kElements}, kElements, 0);
    const absl::Status given =
        workers_.back()->Initialize({{{"a", zeros}, {"b", zeros}}});
    ASSERT_TRUE(given.ok()) << given;
  }

  static absl::Status Push(Worker* worker, uint64_t step) {
    const auto ones = Filled({kElements}, kElements, 1);
    StepGradients gradients;
    gradients.dense = {{{"a", ones}, {"b", ones}}};
    gradients.rows = {{"rows", {kId}, Filled({1, 1}, 1, 1)}};
    return worker->Push(step, gradients).status();
  }
  static absl::Status Step(Worker* worker, uint64_t step) {
    absl::Status status = Push(worker, step);
    if (status.ok()) status = worker->Pull(step + 1).status();
    return status;
  }
  // Trains from `step` to `end`, with the loop that the comment of Reattach()
  // shows. Returns the steps at which the training continued after an error.
  static absl::StatusOr<std::vector<uint64_t>> Train(WorkerPtr* worker,
                                                     uint64_t step,
                                                     uint64_t end) {
    std::vector<uint64_t> restarts;
    while (step < end) {
      absl::Status status = Step(worker->get(), step);
      if (status.ok()) {
        ++step;
        continue;
      }
      auto again = Reattach((*worker)->options(), status);
      if (!again.ok()) return again.status();
      *worker = *std::move(again);
      step = (*worker)->clock();
      restarts.push_back(step);
    }
    return restarts;
  }
  void TakeSteps(uint64_t from, uint64_t end) {
    for (uint64_t step = from; step < end; ++step) {
      const absl::Status status = Step(workers_[0].get(), step);
      ASSERT_TRUE(status.ok()) << status;
    }
  }
  CheckpointResult Checkpoint(bool incremental = false) {
    CheckpointOptions options;
    options.incremental = incremental;
    const auto taken = TakeCheckpoint(workers_[0]->connection(), options);
    EXPECT_TRUE(taken.ok()) << taken.status();
    return taken.value_or(CheckpointResult());
  }
  // Expects that `pushes` pushes were applied to each value.
  void ExpectPushes(uint64_t pushes) {
    for (const auto& node : nodes_) {  // acknowledged ones are applied soon
      while (node->core().report().held_bytes > 0) std::this_thread::yield();
    }
    PullSpec spec;
    spec.rows = {{"rows", {kId}}};
    const auto pulled = workers_[0]->Pull(pushes, spec);
    ASSERT_TRUE(pulled.ok()) << pulled.status();
    const auto wanted = -static_cast<float>(pushes);
    for (const char* name : {"a", "b"}) {
      const auto value = pulled->Dense(name);
      ASSERT_TRUE(value.ok()) << value.status();
      EXPECT_EQ(LastOf(*value), wanted) << name;
    }
    EXPECT_EQ(LastOf(pulled->Rows(0)), wanted);
  }
  // Returns the error of a call to a server that no longer has the worker's
  // run.
  absl::Status FailedCall() {
    const absl::Status status = workers_[0]->Pull(0).status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    return status;
  }

  uint32_t workers_expected_ = 1;
  std::unique_ptr<Folder> folder_ = std::make_unique<Folder>();
  Folder others_;  // of another training
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<WorkerPtr> workers_;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_TESTS_PS_CLIENT_RESTARTABLE_H_
