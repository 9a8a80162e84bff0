// Restore() into a table that has rows already, and during a snapshot.

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

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
  // The next snapshot has the restored rows.
  SnapshotOptions since;
  since.since = snapshot->epoch();
  snapshot.reset();
  snapshot = *table->BeginSnapshot(since);
  EXPECT_EQ(All(snapshot.get()).values, (Floats{7, 7}));
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
