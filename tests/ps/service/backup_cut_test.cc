// Tests checkpoints of tables with different numbers of backup workers, over
// stock gRPC. One table may then be a step ahead of another table.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "ps/checkpoint/manifest.h"
#include "ps/checkpoint/posix_files.h"
#include "ps/client/checkpoint.h"
#include "ps/client/define.h"
#include "ps/client/worker.h"
#include "ps/consistency/policy.h"
#include "tests/ps/checkpoint/test_folder.h"
#include "tests/ps/service/node.h"

namespace penstock::ps {
namespace {

constexpr uint32_t kWorkers = 2;
constexpr size_t kServers = 2;
constexpr uint64_t kIds = 64;  // rows of a table, at both servers

TableSpec Rows(const std::string& name, int64_t staleness,
               uint32_t backup_workers) {
  TableSpec table;
  table.name = name;
  SparseSpec rows;
  rows.dim = 1;
  table.rows = rows;
  table.staleness = staleness;
  table.backup_workers = backup_workers;
  table.optimizer.schedule.learning_rate = 1;
  return table;
}

// Returns a model with three tables: "all" waits for both workers, "first" for
// one of them, "free" for none.
Model MixedTables() {
  return {{Rows("all", 0, 0), Rows("first", 0, 1),
           Rows("free", ConsistencyPolicy::kUnlimited, 0)}};
}

std::vector<uint64_t> AllIds() {
  std::vector<uint64_t> ids(kIds);
  for (uint64_t i = 0; i < kIds; ++i) ids[i] = i;
  return ids;
}

// Two servers over one folder, and two workers. A push of step s subtracts
// 10^s from each row.
class BackupCutTest : public testing::Test {
 protected:
  void TearDown() override {
    workers_.clear();
    nodes_.clear();
  }

  void Start(bool restore) {
    TearDown();
    Node::Options options;
    options.files = files_.get();
    options.restore = restore;
    options.workers = kWorkers;
    options.lease = absl::Minutes(1);
    Definition definition;
    for (size_t i = 0; i < kServers; ++i) {
      nodes_.push_back(std::make_unique<Node>(options));
      definition.servers.push_back(nodes_.back()->Connect());
      definition.addresses.push_back(absl::StrCat("ps", i, ":1"));
    }
    definition.model = MixedTables();
    auto defined = Define(definition);
    ASSERT_TRUE(defined.ok()) << defined.status();
    defined_ = *std::move(defined);
    std::vector<std::thread> joining;
    workers_.resize(kWorkers);
    for (uint32_t rank = 0; rank < kWorkers; ++rank) {
      joining.emplace_back([this, rank] {
        Worker::Options options;
        options.connection = defined_.connection;
        options.rank = rank;
        auto joined = Worker::Join(std::move(options));
        ASSERT_TRUE(joined.ok()) << joined.status();
        workers_[rank] = *std::move(joined);
      });
    }
    for (std::thread& each : joining) each.join();
  }

  void Push(uint32_t rank, uint64_t step) {
    float gradient = 1;
    for (uint64_t i = 0; i < step; ++i) gradient *= 10;
    const auto values = *tensor::Tensor::Of<float>(
        {kIds, 1}, std::vector<float>(kIds, gradient));
    StepGradients gradients;
    for (const TableSpec& table : MixedTables().tables) {
      gradients.rows.push_back({table.name, AllIds(), values});
    }
    const auto pushed = workers_[rank]->Push(step, gradients);
    ASSERT_TRUE(pushed.ok()) << pushed.status();
  }

  // Returns the values of one rank's pull of `step`, for all rows of a table.
  // All rows have the same value.
  float ValueAt(uint32_t rank, uint64_t step, const std::string& table) {
    PullSpec spec;
    spec.rows = {{table, AllIds()}};
    const auto pulled = workers_[rank]->Pull(step, spec);
    EXPECT_TRUE(pulled.ok()) << pulled.status();
    if (!pulled.ok()) return 0;
    const auto values = *pulled->Rows(0).flat<float>();
    for (const float each : values) EXPECT_EQ(each, values[0]) << table;
    return values[0];
  }

  // Waits until both servers have ended the step of "first", which needs one
  // push, while "all" has no push. Returns false after ten seconds.
  bool IsFirstAhead() {
    const absl::Time deadline = absl::Now() + absl::Seconds(10);
    while (absl::Now() < deadline) {
      size_t ahead = 0;
      for (const auto& node : nodes_) {
        const ServerReport report = node->core().report();
        if (report.tables[1].rows > 0 && report.tables[0].rows == 0) ++ahead;
      }
      if (ahead == kServers) return true;
      absl::SleepFor(absl::Milliseconds(1));
    }
    return false;
  }

  const checkpoint::TestFolder folder_;
  const std::unique_ptr<checkpoint::Files> files_ =
      *checkpoint::OpenFolder(folder_.name());
  std::vector<std::unique_ptr<Node>> nodes_;
  Defined defined_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

// Chooses the cut while "first" is one step ahead of "all". Afterwards both
// workers push beyond the cut.
TEST_F(BackupCutTest, TablesOfACheckpointAreAtOneStepAndNoStepIsSkipped) {
  ASSERT_NO_FATAL_FAILURE(Start(/*restore=*/false));
  Push(0, 0);
  ASSERT_TRUE(IsFirstAhead());
  absl::Notification has_cut;
  std::string cut;
  CheckpointOptions options;
  options.timeout = absl::Minutes(1);
  options.progress = [&](absl::string_view line) {
    if (!absl::StrContains(line, "writes version") ||
        has_cut.HasBeenNotified()) {
      return;
    }
    cut = std::string(line);
    has_cut.Notify();
  };
  absl::StatusOr<CheckpointResult> taken = absl::UnknownError("not taken");
  std::thread writer([&] {
    taken = TakeCheckpoint(*defined_.connection, options);
    if (!has_cut.HasBeenNotified()) has_cut.Notify();
  });
  has_cut.WaitForNotification();
  EXPECT_TRUE(absl::StrContains(cut, "writes version 1,")) << cut;
  Push(1, 0);
  std::thread other([&] { Push(0, 1); });
  Push(1, 1);
  other.join();
  writer.join();
  ASSERT_TRUE(taken.ok()) << taken.status();
  const auto manifest = checkpoint::ReadManifest(files_.get(), taken->step);
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_EQ(manifest->cut.version, 1u);

  ASSERT_NO_FATAL_FAILURE(Start(/*restore=*/true));
  for (const auto& worker : workers_) EXPECT_EQ(worker->clock(), 1u);
  EXPECT_EQ(ValueAt(0, 1, "all"), -1);
  EXPECT_EQ(ValueAt(0, 1, "first"), -1);
  EXPECT_EQ(ValueAt(0, 1, "free"), -2);  // has one push of each worker
  for (uint64_t step = 1; step < 3; ++step) {
    Push(0, step);
    Push(1, step);
  }
  EXPECT_EQ(ValueAt(1, 3, "all"), -111);
  EXPECT_EQ(ValueAt(1, 3, "first"), -111);
  EXPECT_EQ(ValueAt(1, 3, "free"), -222);
}

}  // namespace
}  // namespace penstock::ps
