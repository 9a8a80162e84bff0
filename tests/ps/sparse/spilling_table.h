// Makes a table that spills.

#ifndef PENSTOCK_TESTS_PS_SPARSE_SPILLING_TABLE_H_
#define PENSTOCK_TESTS_PS_SPARSE_SPILLING_TABLE_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <map>

#include "ps/sparse/table.h"
#include "tests/ps/sparse/small_table.h"

namespace penstock::ps::sparse {

// Returns options for rows of 1 KiB and a budget of 2 MiB.
inline Options SpillOptions(Tier* tier) {
  Options options = BudgetOptions(AboveBudget::kSpill);
  options.tier = tier;
  return options;
}

// Returns the first elements of a full snapshot's rows, by id.
inline std::map<uint64_t, float> RowsOf(Snapshot* snapshot, size_t dim) {
  std::map<uint64_t, float> rows;
  RowBlock block;
  for (;;) {
    const auto more = snapshot->Next(100, &block);
    EXPECT_TRUE(more.ok()) << more.status();
    if (!more.ok() || !*more) return rows;
    for (size_t i = 0; i < block.ids.size(); ++i) {
      EXPECT_TRUE(rows.emplace(block.ids[i], block.values[i * dim]).second);
    }
  }
}

}  // namespace penstock::ps::sparse

#endif  // PENSTOCK_TESTS_PS_SPARSE_SPILLING_TABLE_H_
