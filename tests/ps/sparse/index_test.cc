#include "ps/sparse/index.h"

#include <gtest/gtest.h>

#include <array>
#include <iostream>
#include <map>
#include <random>

#include "tests/ps/sparse/failing_memory.h"

namespace penstock::ps::sparse {
namespace {

bool Insert(RowIndex* index, uint32_t tag, uint32_t row) {
  if (index->size() == index->limit() && !index->Grow()) return false;
  index->Insert(tag, row);
  return true;
}

uint32_t Find(const RowIndex& index, uint32_t tag, uint32_t row) {
  return index.Find(tag, [&](uint32_t other) { return other == row; });
}

TEST(RowIndexTest, AnEmptyOneHasNothing) {
  const RowIndex index(SystemMemory());
  EXPECT_EQ(Find(index, 5, 5), kNoRow);
  EXPECT_EQ(index.bytes(), 0u);
  EXPECT_EQ(index.limit(), 0u);
}

// Tests random tags, and tags of which many share few places. Runs of occupied
// places get long, wrap around the end, and are closed in every way.
TEST(RowIndexTest, RandomProgramsGiveWhatAMapGives) {
  const auto seed = std::random_device()();
  std::cout << "seed " << seed << "\n";
  std::mt19937 random(seed);
  for (int program = 0; program < 200; ++program) {
    RowIndex index(SystemMemory());
    std::map<uint32_t, uint32_t> model;  // tag of each row
    const uint32_t tags =
        std::array<uint32_t, 3>{0xffffffff, 40, 6}[program % 3];
    for (int step = 0; step < 1000; ++step) {
      const uint32_t row = random() % 150;
      if (model.count(row) == 0) {
        model[row] = (random() % tags) - 3;
        ASSERT_TRUE(Insert(&index, model[row], row));
      } else if (random() % 8 == 0) {
        index.Replace(model[row], row, row + 1000);
        index.Replace(model[row], row + 1000, row);
      } else {
        index.Erase(model[row], row);
        model.erase(row);
      }
      ASSERT_EQ(index.size(), model.size());
    }
    for (uint32_t row = 0; row < 150; ++row) {
      const auto found = model.find(row);
      if (found != model.end()) {
        ASSERT_EQ(Find(index, found->second, row), row) << program;
      }
    }
    for (uint32_t tag = 0; tag < 60; ++tag) {
      ASSERT_EQ(index.Find(tag - 3, [](uint32_t row) { return row >= 1000; }),
                kNoRow);
    }
  }
}

TEST(RowIndexTest, StaysAsItIsWithoutMemoryToGrow) {
  FailingMemory memory;
  RowIndex index(&memory);
  for (uint32_t row = 0; row < 48; ++row) ASSERT_TRUE(Insert(&index, row, row));
  memory.FailAfter(0);
  EXPECT_FALSE(index.Grow());
  for (uint32_t row = 0; row < 48; ++row) EXPECT_EQ(Find(index, row, row), row);
  memory.FailAfter(1);
  EXPECT_TRUE(index.Grow());
  for (uint32_t row = 0; row < 48; ++row) EXPECT_EQ(Find(index, row, row), row);
}

}  // namespace
}  // namespace penstock::ps::sparse
