// Tests Restore() into a table that has rows already, and during a snapshot.

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <vector>

#include "ps/sparse/table.h"
#include "tests/ps/sparse/small_table.h"

namespace penstock::ps::sparse {
namespace {

// Returns a block for tables of two floats without slots.
RowBlock BlockOf(const Ids& ids, float value, uint32_t updates) {
  RowBlock block;
  block.ids = ids;
  block.values.resize(ids.size() * 2, value);
  block.last_use.resize(ids.size());
  block.updates.resize(ids.size(), updates);
  return block;
}

RowBlock All(Snapshot* snapshot) {
  RowBlock block;
  RowBlock none;
  EXPECT_TRUE(*snapshot->Next(1000, &block));
  EXPECT_FALSE(*snapshot->Next(1000, &none));
  return block;
}

// Follows the order in blocks of an incremental checkpoint.
TEST(RestoreTest, FirstRemovesAndThenPutsIn) {
  const auto table = Make(SmallOptions());
  ASSERT_TRUE(Push(table.get(), {1, 2, 3}).ok());
  RowBlock block = BlockOf({3, 4}, 7, 1);
  block.removed = {2, 3, 99};
  ASSERT_TRUE(table->Restore(block).ok());
  EXPECT_EQ(table->counters().rows, 3u);
  EXPECT_EQ(Pull(table.get(), {1, 2, 3, 4}), (Floats{1, 0, 7, 7}));
}

TEST(RestoreTest, ASnapshotHasWhatItsRowsWereBefore) {
  const auto table = Make(SmallOptions());
  ASSERT_TRUE(Push(table.get(), {1}).ok());
  auto snapshot = *table->BeginSnapshot({});
  ASSERT_TRUE(table->Restore(BlockOf({1}, 7, 1)).ok());
  EXPECT_EQ(All(snapshot.get()).values, (Floats{1, 0}));
  // Takes a snapshot, which contains the restored rows.
  SnapshotOptions since;
  since.since = snapshot->epoch();
  snapshot.reset();
  snapshot = *table->BeginSnapshot(since);
  EXPECT_EQ(All(snapshot.get()).values, (Floats{7, 7}));
}

// Returns a block of rows, each of which was last used at the time in
// `last_used` with the same index.
RowBlock UsedAt(const Ids& ids, const std::vector<uint32_t>& last_use) {
  RowBlock block = BlockOf(ids, 7, 1);
  block.last_use = last_use;
  return block;
}

// Tests a restore without enough room. The order in the file says nothing about
// the last use of the rows.
TEST(RestoreTest, WithoutRoomTheLeastRecentlyUsedRowsGo) {
  Options by_rows = SmallOptions();
  by_rows.max_rows = 3;
  const auto table = Make(by_rows);
  ASSERT_TRUE(table->Restore(UsedAt({1, 2, 3, 4}, {9, 5, 7, 3})).ok());
  ASSERT_TRUE(table->Restore(UsedAt({5, 6}, {8, 1})).ok());
  const RestoreLoss loss = table->FinishRestore();
  EXPECT_EQ(loss.ids, 3u);
  EXPECT_FALSE(loss.by_memory);
  EXPECT_EQ(Pull(table.get(), {1, 2, 3, 4, 5, 6}), (Floats{7, 0, 7, 0, 7, 0}));
}

// Tests rows of 1 KiB, of which 2 MiB hold fewer than 2,000.
TEST(RestoreTest, WithoutMemoryTheLeastRecentlyUsedRowsGo) {
  for (const AboveBudget above : {AboveBudget::kRefuse, AboveBudget::kEvict}) {
    Options options = BudgetOptions(above);
    options.shards = 1;
    const auto table = Make(options);
    RowBlock block;
    for (uint32_t id = 0; id < 3000; ++id) {
      block.ids = {id};
      block.values.assign(options.dim, 7);
      block.last_use = {5000 - id};  // the newest come first
      block.updates = {1};
      ASSERT_TRUE(table->Restore(block).ok());
    }
    const RestoreLoss loss = table->FinishRestore();
    EXPECT_TRUE(loss.by_memory);
    const size_t lost = loss.ids;
    EXPECT_GT(lost, 900u);
    EXPECT_LE(table->counters().bytes, options.budget_bytes);
    const size_t kept = 3000 - lost;
    EXPECT_EQ(table->counters().rows, kept);
    EXPECT_EQ(Pull(table.get(), {0, kept - 1, kept, 2999}),
              (Floats{7, 7, 0, 0}));
  }
}

// Tests a later checkpoint of a chain. The later value of an id replaces the
// earlier one.
TEST(RestoreTest, AnIdThatIsRemovedOrPutLaterIsNotLost) {
  Options options = SmallOptions();
  options.max_rows = 2;
  const auto table = Make(options);
  ASSERT_TRUE(table->Restore(UsedAt({1, 2, 3, 4}, {1, 2, 3, 4})).ok());
  RowBlock later = UsedAt({1, 4}, {5, 6});
  later.removed = {2, 3};
  ASSERT_TRUE(table->Restore(later).ok());
  EXPECT_EQ(table->FinishRestore().ids, 0u);
  EXPECT_EQ(Pull(table.get(), {1, 2, 3, 4}), (Floats{7, 0, 0, 7}));
}

TEST(RestoreTest, ACountOfUpdatesStaysAtItsLargest) {
  const auto table = Make(SmallOptions());
  constexpr uint32_t kLargest = std::numeric_limits<uint32_t>::max();
  ASSERT_TRUE(table->Restore(BlockOf({1}, 7, kLargest - 1)).ok());
  for (int push = 0; push < 3; ++push) {
    ASSERT_TRUE(Push(table.get(), {1}).ok());
    auto snapshot = *table->BeginSnapshot({});
    EXPECT_EQ(All(snapshot.get()).updates[0], kLargest);
  }
}

}  // namespace
}  // namespace penstock::ps::sparse
