// Tests checkpoints whose model has changed after they were written.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ps/checkpoint/files.h"
#include "tests/ps/checkpoint/memory_files.h"
#include "tests/ps/server/checkpoint_fixture.h"
#include "tests/ps/server/small_server.h"
#include "tests/ps/server/small_training.h"

namespace penstock::ps {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

using ChangedModelTest = CheckpointTest;

// Files that count the bytes that are read.
class CountingFiles final : public checkpoint::MemoryFiles {
 public:
  absl::StatusOr<std::unique_ptr<checkpoint::ReadableFile>> Open(
      absl::string_view path) override {
    auto file = MemoryFiles::Open(path);
    if (!file.ok()) return file;
    return {std::make_unique<File>(*std::move(file), &read_)};
  }
  uint64_t read() const { return read_; }

 private:
  class File final : public checkpoint::ReadableFile {
   public:
    File(std::unique_ptr<checkpoint::ReadableFile> file, uint64_t* read)
        : file_(std::move(file)), read_(read) {}
    uint64_t size() const override { return file_->size(); }
    absl::StatusOr<size_t> Read(uint64_t offset, char* buffer,
                                size_t size) override {
      const auto got = file_->Read(offset, buffer, size);
      if (got.ok()) *read_ += *got;
      return got;
    }

   private:
    const std::unique_ptr<checkpoint::ReadableFile> file_;
    uint64_t* const read_;
  };

  uint64_t read_ = 0;
};

// Tests which shards a restore reads. A new table changes the servers of the
// other table's ids, because shards are dealt to the servers in turn.
TEST_F(ChangedModelTest, ServersReadOnlyTheirOwnRowsIfNoIdHasMoved) {
  constexpr size_t kServers = 3;
  constexpr size_t kDim = 100;
  CountingFiles files;
  TrainingState before;
  Model model;
  model.tables = {SparseTable("e", kDim)};
  uint64_t bytes = 0;
  {
    SmallTraining training(model, &files, Of(kServers));
    Start(&training);
    TableValues gradients;
    for (uint64_t id = 0; id < 300; ++id) {
      gradients.rows["e"][id].assign(kDim, static_cast<float>(id));
    }
    ASSERT_TRUE(training.Push(0, gradients).ok());
    ASSERT_TRUE(training.Settle().ok());
    ASSERT_TRUE(training.Checkpoint().ok());
    before = training.State();
    for (const auto& [name, content] : files.Contents()) {
      bytes += content.size();
    }
  }
  const auto bytes_read = [&](const Model& restored, size_t servers) {
    const uint64_t until_now = files.read();
    SmallTraining training(restored, &files, Of(servers, true));
    EXPECT_TRUE(training.Define().ok());
    EXPECT_EQ(training.State().rows["e"], before.rows["e"]);
    return files.read() - until_now;
  };
  EXPECT_LT(bytes_read(model, kServers), 2 * bytes);
  EXPECT_GT(bytes_read(model, kServers - 1), (kServers - 1) * bytes);
  model.tables.push_back(SparseTable("d", 1));
  EXPECT_GT(bytes_read(model, kServers), kServers * bytes * 9 / 10);
}

// Tests new tables, one of which shares a pack with restored tables. Each new
// table begins with its own first values.
TEST_F(ChangedModelTest, TablesThatAreNewBeginAnewBesideTheOthers) {
  TrainingState before;
  {
    SmallTraining training(SmallModel(), &files_, Of(2));
    Start(&training);
    Step(&training);
    ASSERT_TRUE(training.Checkpoint().ok());
    before = training.State();
  }
  Model model = SmallModel();
  model.tables.insert(model.tables.begin(), DenseTable("c", {2}));
  model.tables.push_back(DenseTable("large too", {100, 50}));
  model.tables.push_back(SparseTable("f", 2));
  for (TableSpec& table : model.tables) table.optimizer = Adam();
  TableValues first;
  first.dense["a"] = {7, 7, 7};  // "a" has a restored value
  first.dense["c"] = {5, 6};
  first.dense["large too"].assign(5000, 8);
  for (size_t servers = 1; servers <= 3; ++servers) {
    SmallTraining training(model, &files_, Of(servers, true));
    ASSERT_EQ(*training.Define(), 1u);
    const absl::Status begun = training.Begin(first);
    ASSERT_TRUE(begun.ok()) << begun;
    TrainingState state = training.State();
    EXPECT_EQ(state.dense["c"], (std::vector<float>{5, 6}));
    EXPECT_EQ(state.dense["c/m"], (std::vector<float>{0, 0}));
    EXPECT_EQ(state.dense["large too"], std::vector<float>(5000, 8));
    EXPECT_TRUE(state.rows["f"].empty());
    for (const auto& [name, values] : before.dense) {
      EXPECT_EQ(state.dense[name], values) << name << ", " << servers;
    }
    EXPECT_EQ(state.rows["e"], before.rows["e"]);
    std::map<std::string, bool> is_new;
    for (size_t server = 0; server < servers; ++server) {
      for (const TableReport& table : training.server(server).report().tables) {
        is_new[table.name] = table.is_new;
      }
    }
    EXPECT_THAT(is_new, testing::UnorderedElementsAre(
                            std::pair("a", false), std::pair("b", false),
                            std::pair("large", false), std::pair("e", false),
                            std::pair("c", true), std::pair("large too", true),
                            std::pair("f", true)));
  }
  // Continues the training, whose checkpoints have all tables.
  SmallTraining training(model, &files_, Of(2, true));
  ASSERT_TRUE(training.Define().ok());
  ASSERT_TRUE(training.Begin(first).ok());
  TableValues gradients = Gradients(1);
  gradients.dense["c"] = {1, 1};
  gradients.dense["large too"].assign(5000, 1);
  gradients.rows["f"] = {{3, {1, 1}}};
  ASSERT_TRUE(training.Push(0, gradients).ok());
  ASSERT_TRUE(training.Settle().ok());
  const auto step = training.Checkpoint();
  ASSERT_TRUE(step.ok()) << step.status();
  SmallTraining again(model, &files_, Of(1, true));
  ASSERT_EQ(*again.Define(), *step);
  EXPECT_TRUE(again.State() == training.State());
}

TEST_F(ChangedModelTest, TablesThatAreGoneAreDroppedOnlyIfThatWasSaid) {
  SmallTraining training(SmallModel(), &files_, Of(1));
  Start(&training);
  Step(&training);
  ASSERT_TRUE(training.Checkpoint().ok());
  Model model = SmallModel();
  model.tables.erase(model.tables.begin() + 2);  // removes "large"
  SmallTraining::Options options = Of(1, true);
  const absl::Status refused =
      SmallTraining(model, &files_, options).Define().status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("'large' is in the checkpoint and not in this model"));
  options.drop_tables = true;
  SmallTraining smaller(model, &files_, options);
  ASSERT_EQ(*smaller.Define(), 1u);
  TrainingState wanted = training.State();
  for (const char* gone : {"large", "large/m", "large/v"}) {
    wanted.dense.erase(gone);
  }
  EXPECT_EQ(smaller.State().dense, wanted.dense);
  EXPECT_EQ(smaller.State().rows, wanted.rows);
}

// Tests a checkpoint with the rows of two servers, on one server that has no
// room for all of them. 64 shards have 8 rows each.
TEST_F(ChangedModelTest, RowsThatDoNotFitAreDroppedOnlyIfThatWasSaid) {
  Model model = SmallModel();
  absl::get<SparseSpec>(model.tables[3].rows).max_rows = 512;
  {
    SmallTraining training(model, &files_, Of(2));
    Start(&training);
    TableValues gradients = Gradients(1);
    for (uint64_t id = 0; id < 600; ++id) gradients.rows["e"][id] = {1, 1};
    ASSERT_TRUE(training.Push(0, gradients).ok());
    ASSERT_TRUE(training.Settle().ok());
    ASSERT_TRUE(training.Checkpoint().ok());
  }
  SmallTraining::Options options = Of(1, true);
  const absl::Status refused =
      SmallTraining(model, &files_, options).Define().status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(
      std::string(refused.message()),
      AllOf(HasSubstr("table e: "), HasSubstr("rows at server 0"),
            HasSubstr("max_rows is 512"), HasSubstr("--restore-evict")));
  options.drop_rows = true;
  std::vector<std::string> log;
  options.restore_log = [&](const std::string& line) { log.push_back(line); };
  SmallTraining smaller(model, &files_, options);
  ASSERT_EQ(*smaller.Define(), 1u);
  const size_t rows = smaller.State().rows["e"].size();
  EXPECT_GT(rows, 400u);
  EXPECT_LE(rows, 512u);
  EXPECT_THAT(
      log, Contains(AllOf(HasSubstr("table e: "), HasSubstr("dropped those"))));
}

// Tests a table that evicts, which is nearly always full. In another process,
// the rows are distributed to the shards in a different way.
TEST_F(ChangedModelTest, ATableThatIsFullIsRestoredWithoutAFlag) {
  Model model = SmallModel();
  absl::get<SparseSpec>(model.tables[3].rows).max_rows = 512;
  {
    SmallTraining training(model, &files_, Of(1));
    Start(&training);
    TableValues gradients = Gradients(1);
    for (uint64_t id = 0; id < 2000; ++id) gradients.rows["e"][id] = {1, 1};
    ASSERT_TRUE(training.Push(0, gradients).ok());
    ASSERT_TRUE(training.Settle().ok());
    ASSERT_EQ(training.State().rows["e"].size(), 512u);
    ASSERT_TRUE(training.Checkpoint().ok());
  }
  SmallTraining again(model, &files_, Of(1, true));
  ASSERT_EQ(*again.Define(), 1u);
  EXPECT_GT(again.State().rows["e"].size(), 400u);
}

}  // namespace
}  // namespace penstock::ps
