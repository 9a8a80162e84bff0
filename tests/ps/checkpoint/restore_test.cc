#include "ps/checkpoint/restore.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ps/checkpoint/repository.h"
#include "tests/ps/checkpoint/memory_files.h"
#include "tests/ps/checkpoint/world.h"

namespace penstock::ps::checkpoint {
namespace {

std::unique_ptr<Repository> Open(Files* files) {
  auto repository = Repository::Open(files);
  EXPECT_TRUE(repository.ok()) << repository.status();
  return *std::move(repository);
}

TEST(RestoreTest, ComesBackOnAnyNumberOfServers) {
  for (size_t from : {1, 2, 3, 8, 50}) {
    for (size_t to : {1, 2, 5, 7, 64}) {
      SCOPED_TRACE(absl::StrCat(from, " to ", to));
      MemoryFiles files;
      const World world(static_cast<unsigned>(from * 100 + to));
      ASSERT_TRUE(world.Write(&files, Open(&files).get(), 5, from).ok());
      const auto chain = OpenChain(&files, 5);
      ASSERT_TRUE(chain.ok()) << chain.status();
      const auto restored = World::Read(&files, *chain, to);
      ASSERT_TRUE(restored.ok()) << restored.status();
      EXPECT_TRUE(*restored == world);
    }
  }
}

// Tests tables whose rows cross block boundaries, and reads of some rows that
// are smaller than a block.
TEST(RestoreTest, TablesOfManyBlocksComeBack) {
  MemoryFiles files;
  const World world(/*seed=*/4, /*large_rows=*/120'001);
  ASSERT_TRUE(world.Write(&files, Open(&files).get(), 5, 2).ok());
  const auto chain = OpenChain(&files, 5);
  ASSERT_TRUE(chain.ok()) << chain.status();
  const auto restored = World::Read(&files, *chain, 3);
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_TRUE(*restored == world);
}

TEST(RestoreTest, EachLinkOfAChainComesBackAsItWas) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    MemoryFiles files;
    const auto repository = Open(&files);
    World world(seed);
    std::map<uint64_t, World> written;
    for (uint64_t step = 0; step < 10; ++step) {
      absl::optional<uint64_t> base;
      if (step > 0) base = step - 1;
      ASSERT_TRUE(world.Write(&files, repository.get(), step, 3, base).ok());
      written.emplace(step, world);
      world.Clean();
      world.Change();
    }
    for (const auto& [step, expected] : written) {
      const auto chain = OpenChain(&files, step);
      ASSERT_TRUE(chain.ok()) << chain.status();
      EXPECT_EQ(chain->links.size(), step + 1);
      const auto restored = World::Read(&files, *chain, 2);
      ASSERT_TRUE(restored.ok()) << restored.status();
      EXPECT_TRUE(*restored == expected) << "step " << step;
    }
  }
}

TEST(RestoreTest, AnIncrementalOneIsAsSmallAsWhatHasChanged) {
  MemoryFiles files;
  const auto repository = Open(&files);
  World world(/*seed=*/1, /*large_rows=*/10'000);
  ASSERT_TRUE(world.Write(&files, repository.get(), 1, 2).ok());
  world.Clean();
  world.ChangeLittle();
  ASSERT_TRUE(world.Write(&files, repository.get(), 2, 2, 1).ok());
  uint64_t bytes = 0;
  const auto chain = OpenChain(&files, 2);
  for (const ShardInfo& shard : chain->newest().shards) bytes += shard.bytes;
  EXPECT_LT(bytes, 5'000u);
  EXPECT_TRUE(*World::Read(&files, *chain, 1) == world);
}

// A sink that only counts what it receives.
class CountingSink : public Sink {
 public:
  absl::Status TakeDense(const DenseElements& elements) override {
    bytes += elements.bytes.size();
    return result;
  }
  absl::Status TakeSparseStep(size_t, uint64_t) override { return result; }
  absl::Status TakeRow(size_t, const SparseRow&) override {
    ++rows;
    return result;
  }
  absl::Status DropRow(size_t, uint64_t) override { return result; }

  uint64_t bytes = 0;
  uint64_t rows = 0;
  absl::Status result;
};

class RestoreSomeTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(world_.Write(&files_, Open(&files_).get(), 5, 2).ok());
    chain_ = *OpenChain(&files_, 5);
  }

  absl::Status Restored(const Model& model, const Wanted& wanted) {
    return Restore(&files_, chain_, model, wanted, &sink_);
  }

  MemoryFiles files_;
  const World world_;
  Chain chain_;
  CountingSink sink_;
};

TEST_F(RestoreSomeTest, OnlyWhatIsWantedIsRead) {
  Wanted wanted;
  wanted.rows = {{0, 10, 3}, {0, 20, 1}};
  const int before = files_.operations();
  ASSERT_TRUE(Restored(world_.model(), wanted).ok());
  EXPECT_EQ(sink_.bytes, 4u * 7 * 4 * 3);
  EXPECT_EQ(sink_.rows, 0u);
  // Allows these operations for each of two shards: open, header, trailer,
  // footer, and two reads per block of three.
  EXPECT_LE(files_.operations() - before, 2 * (4 + 6));
}

TEST_F(RestoreSomeTest, RowsThatAreNotThereOrTwiceAreRefused) {
  for (const std::vector<Wanted::Rows>& rows :
       std::vector<std::vector<Wanted::Rows>>{{{0, 0, 41}},
                                              {{0, 41, 0}},
                                              {{0, UINT64_MAX, 2}},
                                              {{2, 0, 1}},
                                              {{99, 0, 1}},
                                              {{0, 0, 5}, {0, 4, 2}}}) {
    Wanted wanted;
    wanted.rows = rows;
    const absl::Status status = Restored(world_.model(), wanted);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  }
  EXPECT_EQ(sink_.bytes, 0u);
}

TEST_F(RestoreSomeTest, AnErrorOfTheSinkEndsIt) {
  sink_.result = absl::ResourceExhaustedError("no memory");
  Wanted wanted;
  wanted.rows = {{0, 0, 40}};
  EXPECT_EQ(Restored(world_.model(), wanted), sink_.result);
  wanted.rows.clear();
  wanted.holds = [](size_t, uint64_t) { return true; };
  EXPECT_EQ(Restored(world_.model(), wanted), sink_.result);
}

TEST_F(RestoreSomeTest, ItCanBeCancelled) {
  Wanted wanted;
  wanted.rows = {{0, 0, 40}};
  EXPECT_TRUE(
      absl::IsCancelled(Restore(&files_, chain_, world_.model(), wanted, &sink_,
                                [](uint64_t, uint64_t) { return false; })));
}

TEST_F(RestoreSomeTest, AnotherModelIsRefusedByTheFirstTableThatDiffers) {
  const auto refused = [&](void (*change)(Model*)) {
    Model model = world_.model();
    change(&model);
    const absl::Status status = Restored(model, Wanted());
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    return std::string(status.message());
  };
  const std::string is = "the checkpoint is of another model: ";
  EXPECT_EQ(refused([](Model* m) { m->tables.pop_back(); }),
            is + "table 'words' is in the checkpoint and not in this model");
  EXPECT_EQ(refused([](Model* m) {
              m->tables[0].shape = {40, 8};
            }),
            is + "table 'large' is [40, 7] in the checkpoint and [40, 8] in "
                 "this model");
  EXPECT_EQ(
      refused([](Model* m) { m->tables[0].dtype = tensor::DType::kBF16; }),
      is + "table 'large' is f32 in the checkpoint and bf16 in this "
           "model");
  EXPECT_EQ(refused([](Model* m) { m->tables[0].slots.pop_back(); }),
            is + "table 'large' has slots m f32, v f32 in the checkpoint and "
                 "slots m f32 in this model");
  EXPECT_EQ(refused([](Model* m) { m->tables[0].slots.clear(); }),
            is + "table 'large' has slots m f32, v f32 in the checkpoint and "
                 "no slots in this model");
  EXPECT_EQ(refused([](Model* m) { m->tables[5].kind = TableKind::kDense; }),
            is + "table 'words' is sparse in the checkpoint and dense in this "
                 "model");
}

// Tests models that lack a table of the checkpoint or have a new one. Tables'
// indices then differ from those in the checkpoint.
TEST_F(RestoreSomeTest, OfANewTableNothingComesAndADroppedOneIsLeftOut) {
  Model model = world_.model();
  const Model before = model;
  TableDefinition added = model.tables[0];
  added.name = "added";
  model.tables.insert(model.tables.begin(), added);
  added.name = "added rows";
  added.kind = TableKind::kSparse;
  added.shape = {3};
  model.tables.push_back(added);
  EXPECT_EQ(NotIn(before, model),
            (std::vector<std::string>{"added", "added rows"}));
  EXPECT_EQ(NotIn(model, before), std::vector<std::string>());
  Wanted wanted;
  wanted.rows = {{0, 0, 40}, {1, 5, 1}};
  std::vector<size_t> asked;
  wanted.holds = [&](size_t table, uint64_t) {
    asked.push_back(table);
    return false;
  };
  ASSERT_TRUE(Restored(model, wanted).ok());
  for (const size_t table : asked) {
    ASSERT_LT(table, model.tables.size());
    EXPECT_EQ(model.tables[table].kind, TableKind::kSparse);
    EXPECT_NE(model.tables[table].name, "added rows");
  }
  EXPECT_FALSE(asked.empty());

  model.tables.erase(model.tables.begin() + 1);
  wanted.rows = {{0, 0, 40}};
  const absl::Status refused = Restored(model, wanted);
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_EQ(std::string(refused.message()),
            "the checkpoint is of another model: table 'large' is in the "
            "checkpoint and not in this model");
  wanted.may_drop_tables = true;
  EXPECT_TRUE(Restored(model, wanted).ok());
  // Changes a table, which may_drop_tables does not permit.
  model.tables[5].shape = {2};
  EXPECT_TRUE(absl::IsFailedPrecondition(Restored(model, wanted)));
}

TEST(ShardWriterTest, PartsThatAreNotTheirTablesAreRefused) {
  MemoryFiles files;
  const auto repository = Open(&files);
  const World world;
  const auto attempt = repository->Begin(world.Describe(1, 1, {}));
  ASSERT_TRUE(attempt.ok());
  const std::string row(7 * 4, 'x');
  const auto refused = [&](const DensePart& part) {
    auto writer = ShardWriter::Create(&files, &world.model(), *attempt, 0);
    const absl::Status status = (*writer)->AddDense(part);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    // Expects the first error again from later calls.
    EXPECT_EQ((*writer)->BeginSparse(2, 1), status);
    EXPECT_EQ((*writer)->Finish({}).status(), status);
    return !status.ok();
  };
  EXPECT_TRUE(refused({99, 0, 1, 1, {row, row, row}}));
  EXPECT_TRUE(refused({2, 0, 1, 1, {row, row}}));
  EXPECT_TRUE(refused({0, 40, 1, 1, {row, row, row}}));
  EXPECT_TRUE(refused({0, UINT64_MAX, 2, 1, {row, row, row}}));
  EXPECT_TRUE(refused({0, 0, 1, 1, {row, row}}));
  EXPECT_TRUE(refused({0, 0, 1, 1, {}}));
  EXPECT_TRUE(refused({0, 0, 1, 1, {row, row, row + "y"}}));
  auto writer = ShardWriter::Create(&files, &world.model(), *attempt, 0);
  EXPECT_TRUE(absl::IsFailedPrecondition((*writer)->AddRow({})));
  writer->reset();
  writer = ShardWriter::Create(&files, &world.model(), *attempt, 0);
  ASSERT_TRUE((*writer)->BeginSparse(5, 1).ok());
  EXPECT_TRUE(absl::IsInvalidArgument((*writer)->AddRow({1, 2, 3, "abc"})));
  writer->reset();
  writer = ShardWriter::Create(&files, &world.model(), *attempt, 0);
  ASSERT_TRUE((*writer)->Finish({}).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition((*writer)->Finish({}).status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(
      (*writer)->AddDense({0, 0, 1, 1, {row, row, row}})));
}

}  // namespace
}  // namespace penstock::ps::checkpoint
