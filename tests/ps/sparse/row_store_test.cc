#include "ps/sparse/row_store.h"

#include <gtest/gtest.h>

#include <limits>
#include <set>
#include <vector>

#include "tests/ps/sparse/failing_memory.h"

namespace penstock::ps::sparse {
namespace {

constexpr size_t kNoLimit = std::numeric_limits<size_t>::max();
// The number of elements in a row. A row has 16 KiB with its header, and a slab
// of 2 MiB has 127 rows.
constexpr size_t kElements = 4096;

uint32_t Take(RowStore* rows) {
  if (rows->available() == 0 && !rows->AddRoom(kNoLimit)) return kNoRow;
  return rows->Take();
}

std::vector<uint32_t> UsedIn(const RowStore& rows) {
  std::vector<uint32_t> used;
  size_t looks = kNoLimit;
  for (uint32_t next = 0; next != kNoRow;) {
    const uint32_t row = rows.NextUsed(next, &looks, &next);
    if (row != kNoRow) used.push_back(row);
  }
  return used;
}

TEST(RowStoreTest, RowsDoNotOverlap) {
  FailingMemory memory;
  RowStore rows(kElements, &memory);
  std::vector<uint32_t> taken;
  for (uint64_t i = 0; i < 1000; ++i) {
    taken.push_back(Take(&rows));
    rows.At(taken.back())->id = i;
    rows.At(taken.back())->elements()[0] = i;
    rows.At(taken.back())->elements()[kElements - 1] = i;
  }
  for (uint64_t i = 0; i < 1000; ++i) {
    const Row* const row = rows.At(taken[i]);
    EXPECT_EQ(row->id, i);
    EXPECT_EQ(row->elements()[0], i);
    EXPECT_EQ(row->elements()[kElements - 1], i);
  }
  EXPECT_EQ(UsedIn(rows).size(), 1000u);
}

TEST(RowStoreTest, ARowThatIsFreeIsTakenAgainBeforeMemoryIs) {
  FailingMemory memory;
  RowStore rows(kElements, &memory);
  std::vector<uint32_t> taken;
  for (int i = 0; i < 127; ++i) taken.push_back(Take(&rows));
  const size_t bytes = rows.bytes();
  for (int i = 10; i < 60; ++i) rows.Release(taken[i]);
  EXPECT_EQ(rows.size(), 77u);
  EXPECT_EQ(UsedIn(rows).size(), 77u);
  for (int i = 10; i < 60; ++i) {
    ASSERT_GT(rows.available(), 0u);
    rows.Take();
  }
  EXPECT_EQ(rows.bytes(), bytes);
  EXPECT_EQ(UsedIn(rows).size(), 127u);
}

TEST(RowStoreTest, FirstSlabsCountByPagesAndLaterOnesAsAWhole) {
  FailingMemory memory;
  RowStore rows(60, &memory);  // 272 bytes: 15 per page, 7,710 per slab
  ASSERT_TRUE(rows.AddRoom(kNoLimit));
  EXPECT_EQ(rows.bytes(), 15 * 272u);
  while (memory.held() <= size_t{8} << 20) ASSERT_TRUE(rows.AddRoom(kNoLimit));
  EXPECT_EQ(rows.available(), 5 * 7710u);
  EXPECT_EQ(rows.bytes(), 4 * 7710 * 272u + (size_t{2} << 20));
}

TEST(RowStoreTest, StaysBelowItsLimit) {
  FailingMemory memory;
  RowStore rows(60, &memory);
  const size_t limit = size_t{9} << 20;
  while (rows.AddRoom(limit)) EXPECT_LE(rows.bytes(), limit);
  EXPECT_GT(rows.bytes(), limit - 2 * 4096);
}

TEST(RowStoreTest, EmptySlabsGoBackToTheSystem) {
  FailingMemory memory;
  RowStore rows(kElements, &memory);
  std::vector<uint32_t> taken;
  for (int i = 0; i < 1270; ++i) taken.push_back(Take(&rows));
  EXPECT_EQ(memory.held(), size_t{20} << 20);
  for (const uint32_t row : taken) rows.Release(row);
  EXPECT_LE(memory.held(), size_t{4} << 20);
  EXPECT_EQ(rows.size(), 0u);
  EXPECT_LE(rows.bytes(), memory.held());
  for (int i = 0; i < 1270; ++i) ASSERT_NE(Take(&rows), kNoRow);
}

// Tests a store that keeps one row in ten, spread over all slabs.
TEST(RowStoreTest, DrainingLeavesAsManySlabsAsRowsNeed) {
  FailingMemory memory;
  RowStore rows(kElements, &memory);
  std::vector<uint32_t> taken;
  for (int i = 0; i < 1270; ++i) taken.push_back(Take(&rows));
  for (int i = 0; i < 1270; ++i) {
    if (i % 10 != 0) rows.Release(taken[i]);
  }
  EXPECT_EQ(memory.held(), size_t{20} << 20);
  while (rows.Drain()) {
    uint32_t from = 0;
    while (rows.draining()) {
      const uint32_t row = rows.NextToMove(&from);
      ASSERT_NE(row, kNoRow);
      ASSERT_GT(rows.available(), 0u);
      rows.Take();
      rows.Release(row);
    }
  }
  EXPECT_EQ(rows.size(), 127u);
  EXPECT_EQ(UsedIn(rows).size(), 127u);
  EXPECT_LE(memory.held(), size_t{6} << 20);
}

TEST(RowStoreTest, ASlabWhoseDrainingStoppedIsUsedAgain) {
  FailingMemory memory;
  RowStore rows(kElements, &memory);
  std::vector<uint32_t> taken;
  for (int i = 0; i < 1270; ++i) taken.push_back(Take(&rows));
  for (int i = 0; i < 1270; ++i) {
    if (i % 10 != 0) rows.Release(taken[i]);
  }
  const size_t available = rows.available();
  ASSERT_TRUE(rows.Drain());
  EXPECT_LT(rows.available(), available);
  rows.StopDraining();
  EXPECT_EQ(rows.available(), available);
  std::set<uint32_t> all;
  while (rows.available() > 0) all.insert(rows.Take());
  EXPECT_EQ(all.size(), available);
  EXPECT_EQ(UsedIn(rows).size(), 1270u);
}

TEST(RowStoreTest, HasNoRoomWithoutMemory) {
  FailingMemory memory;
  RowStore rows(kElements, &memory);
  memory.FailAfter(0);
  EXPECT_FALSE(rows.AddRoom(kNoLimit));
  memory.FailAfter(1);
  for (int i = 0; i < 127; ++i) ASSERT_NE(Take(&rows), kNoRow);
  EXPECT_EQ(Take(&rows), kNoRow);
  memory.Heal();
  EXPECT_NE(Take(&rows), kNoRow);
}

TEST(RowStoreTest, RowsLargerThanASlabHaveLargerSlabs) {
  FailingMemory memory;
  RowStore rows(size_t{1} << 20, &memory);
  const uint32_t first = Take(&rows);
  const uint32_t second = Take(&rows);
  rows.At(first)->elements()[(1 << 20) - 1] = 1;
  rows.At(second)->elements()[0] = 2;
  EXPECT_EQ(rows.At(first)->elements()[(1 << 20) - 1], 1);
}

TEST(RowStoreTest, LooksAtNoMoreRowsThanItMay) {
  FailingMemory memory;
  RowStore rows(kElements, &memory);
  std::vector<uint32_t> taken;
  for (int i = 0; i < 100; ++i) taken.push_back(Take(&rows));
  for (int i = 0; i < 99; ++i) rows.Release(taken[i]);
  size_t looks = 50;
  uint32_t next = 0;
  EXPECT_EQ(rows.NextUsed(0, &looks, &next), kNoRow);
  EXPECT_EQ(looks, 0u);
  ASSERT_NE(next, kNoRow);
  looks = 50;
  EXPECT_EQ(rows.NextUsed(next, &looks, &next), taken[99]);
}

}  // namespace
}  // namespace penstock::ps::sparse
