// Tests a server with a table whose rows do not fit in memory.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "ps/server/checkpoint_writer.h"
#include "tests/ps/checkpoint/memory_files.h"
#include "tests/ps/server/small_server.h"
#include "tests/ps/server/small_training.h"
#include "tests/ps/sparse/memory_tier.h"

namespace penstock::ps {
namespace {

using sparse::MemoryTier;
using ::testing::HasSubstr;

constexpr WorkerId kWorker = {0, 1};
constexpr uint32_t kDim = 64;
constexpr size_t kRows = 10'000;

// Returns a table with room for about 1,000 rows at a server.
TableSpec SpillingTable() {
  TableSpec table = SparseTable("words", kDim);
  table.optimizer.rule = optim::Rule::kMomentum;
  auto& rows = absl::get<SparseSpec>(table.rows);
  rows.above_budget = sparse::AboveBudget::kSpill;
  rows.budget_bytes = 1;
  rows.budget_bytes = sparse::LeastBudget(OptionsOf(table)) + (size_t{1} << 20);
  return table;
}

tensor::Bundle Gradients() {
  std::vector<int64_t> ids(kRows);
  std::iota(ids.begin(), ids.end(), 0);
  return {
      {Ids("words", ids), Floats("words", {static_cast<int64_t>(kRows), kDim},
                                 std::vector<float>(kRows * kDim, 1))}};
}

// Begins a training whose only table's tier is `*tier`.
void Begin(std::unique_ptr<SmallServer>* server, MemoryTier** tier) {
  Server::Options options;
  options.membership.expected_workers = 1;
  options.tables.new_tier = [tier] {
    auto made = std::make_unique<MemoryTier>();
    *tier = made.get();
    return made;
  };
  *server = std::make_unique<SmallServer>(options);
  ASSERT_TRUE((*server)->Define({{SpillingTable()}}).ok());
  ASSERT_TRUE((**server)->Join(SmallServer::kView, kWorker).ok());
}

TEST(ServerSpillTest, WithoutAFolderTheModelIsRefused) {
  SmallServer server;
  const absl::Status refused = server.Define({{SpillingTable()}}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()),
              testing::AllOf(HasSubstr("table words"),
                             HasSubstr("start it with --spill=DIR")));
}

TEST(ServerSpillTest, RowsOnDiskAreTrainedAndPulled) {
  std::unique_ptr<SmallServer> server;
  MemoryTier* tier = nullptr;
  Begin(&server, &tier);
  for (uint64_t clock = 0; clock < 3; ++clock) {
    ASSERT_TRUE(server->Pull(kWorker, clock).ok());
    ASSERT_TRUE(server->Push(kWorker, clock, Gradients()).ok());
  }
  const auto pulled = server->Pull(kWorker, 3, {{Ids("words", {0, 9'999})}});
  ASSERT_TRUE(pulled.ok()) << pulled.status();
  const TableReport report = (*server)->report().tables[0];
  EXPECT_EQ(report.rows, kRows);
  EXPECT_EQ(report.spilled_rows, tier->size());
  EXPECT_GT(report.spilled_rows, kRows / 2);
  EXPECT_LE(report.bytes, report.budget_bytes);
  EXPECT_EQ(report.evicted_rows, 0u);
}

TEST(ServerSpillTest, ADiskThatCannotBeReadEndsTheTraining) {
  std::unique_ptr<SmallServer> server;
  MemoryTier* tier = nullptr;
  Begin(&server, &tier);
  ASSERT_TRUE(server->Push(kWorker, 0, Gradients()).ok());
  ASSERT_TRUE(server->Pull(kWorker, 1).ok());
  // Starts a push, which is checked before the disk breaks and applied
  // afterwards.
  Answer<Server::PushVerdict> pushed;
  (*server)->Push(SmallServer::kView, kWorker, 1, Gradients(),
                  pushed.callback());
  tier->Break();
  (void)pushed.Wait();
  const absl::Status ended =
      server->Pull(kWorker, 2, {{Ids("words", {0})}}).status();
  EXPECT_TRUE(absl::IsDataLoss(ended)) << ended;
  EXPECT_THAT(std::string(ended.message()),
              HasSubstr("restart the servers from a checkpoint"));
}

// Tests a disk that cannot be read. A pull must not return initial values
// instead of the lost values.
TEST(ServerSpillTest, ADiskThatCannotBeReadEndsATrainingThatIsOnlyRead) {
  std::unique_ptr<SmallServer> server;
  MemoryTier* tier = nullptr;
  Begin(&server, &tier);
  ASSERT_TRUE(server->Push(kWorker, 0, Gradients()).ok());
  ASSERT_TRUE(server->Pull(kWorker, 1).ok());
  tier->Break();
  const absl::Status lost =
      server->Pull(absl::nullopt, 1, {{Ids("words", {0})}}).status();
  ASSERT_TRUE(absl::IsDataLoss(lost)) << lost;
  while ((*server)->report().failure.empty()) std::this_thread::yield();
  EXPECT_THAT((*server)->report().failure,
              testing::AllOf(HasSubstr("training has ended"),
                             HasSubstr("'words': cannot read a row")));
}

class EmptiedTier : public MemoryTier {
 public:
  explicit EmptiedTier(absl::Notification* is_empty) : is_empty_(is_empty) {}
  absl::Status Erase(Key key) override {
    absl::Status status = MemoryTier::Erase(key);
    if (size() == 0 && !is_empty_->HasBeenNotified()) is_empty_->Notify();
    return status;
  }

 private:
  absl::Notification* const is_empty_;
};

// Tests rows that expire. If only some thousands of rows were checked per
// second, the check would take a minute, and the disk would keep replaced data
// for all that time.
TEST(ServerSpillTest, RowsOnDiskExpireSoonHoweverManyThereAre) {
  constexpr size_t kMany = 250'000;
  absl::Notification is_empty;
  Server::Options options;
  options.membership.expected_workers = 1;
  options.tables.new_tier = [&] {
    return std::make_unique<EmptiedTier>(&is_empty);
  };
  TableSpec table = SparseTable("words", 1);
  auto& rows = absl::get<SparseSpec>(table.rows);
  rows.time_to_live = absl::Seconds(1);
  rows.above_budget = sparse::AboveBudget::kSpill;
  rows.budget_bytes = 1;
  rows.budget_bytes = sparse::LeastBudget(OptionsOf(table));
  SmallServer server(options);
  ASSERT_TRUE(server.Define({{table}}).ok());
  ASSERT_TRUE(server->Join(SmallServer::kView, kWorker).ok());
  std::vector<int64_t> ids(kMany);
  std::iota(ids.begin(), ids.end(), 0);
  const auto pushed = server.Push(
      kWorker, 0,
      {{Ids("words", ids), Floats("words", {static_cast<int64_t>(kMany), 1},
                                  std::vector<float>(kMany, 1))}});
  ASSERT_TRUE(pushed.ok()) << pushed.status();
  EXPECT_TRUE(is_empty.WaitForNotificationWithTimeout(absl::Seconds(30)));
}

TEST(ServerSpillTest, CheckpointsHaveTheRowsOnDisk) {
  checkpoint::MemoryFiles files;
  SmallTraining::Options options;
  options.new_tier = [] { return std::make_unique<MemoryTier>(); };
  const Model model = {{SpillingTable()}};
  SmallTraining training(model, &files, options);
  ASSERT_TRUE(training.Define().ok());
  ASSERT_TRUE(training.Begin().ok());
  TableValues gradients;
  for (uint64_t id = 0; id < kRows; ++id) {
    gradients.rows["words"][id].assign(kDim, static_cast<float>(id));
  }
  ASSERT_TRUE(training.Push(0, gradients).ok());
  ASSERT_TRUE(training.Settle().ok());
  ASSERT_TRUE(training.Checkpoint().ok());
  // Pushes the second half of the rows, most of which are on disk, for the
  // incremental checkpoint.
  gradients.rows["words"].erase(gradients.rows["words"].begin(),
                                gradients.rows["words"].find(kRows / 2));
  ASSERT_TRUE(training.Push(0, gradients).ok());
  ASSERT_TRUE(training.Settle().ok());
  const auto step = training.Checkpoint(/*incremental=*/true);
  ASSERT_TRUE(step.ok()) << step.status();
  const TrainingState state = training.State();
  ASSERT_EQ(state.rows.at("words").size(), kRows);

  options.servers = 2;
  options.restore = true;
  SmallTraining restored(model, &files, options);
  const auto found = restored.Define();
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(*found, *step);
  EXPECT_TRUE(restored.State() == state);
  EXPECT_GT(restored.server(0).report().tables[0].spilled_rows, 1000u);
}

}  // namespace
}  // namespace penstock::ps
