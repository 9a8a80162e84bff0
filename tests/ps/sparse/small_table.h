// Makes small tables, with helpers for tests.

#ifndef PENSTOCK_TESTS_PS_SPARSE_SMALL_TABLE_H_
#define PENSTOCK_TESTS_PS_SPARSE_SMALL_TABLE_H_

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "ps/sparse/table.h"

namespace penstock::ps::sparse {

using Ids = std::vector<uint64_t>;
using Floats = std::vector<float>;

inline Options SmallOptions() {
  Options options;
  options.name = "words";
  options.dim = 2;
  options.shards = 1;
  options.hash_seed = 1;
  return options;
}

// Returns options for rows of 1 KiB and a budget of 2 MiB.
inline Options BudgetOptions(AboveBudget above) {
  Options options = SmallOptions();
  options.dim = 248;
  options.shards = 4;
  options.max_removals = 64;
  options.budget_bytes = size_t{2} << 20;
  options.above_budget = above;
  return options;
}

inline std::unique_ptr<Table> Make(const Options& options) {
  auto table = Table::Create(options);
  EXPECT_TRUE(table.ok()) << table.status();
  return *std::move(table);
}

inline absl::Time At(int64_t second) { return absl::FromUnixSeconds(second); }

inline void Add(const float* gradient, float* value, float* slots) {
  value[0] += gradient[0];
}

// Adds 1 to the first element of each row, for any dimension.
inline absl::StatusOr<PushResult> Push(Table* table, const Ids& ids,
                                       int64_t second = 0) {
  return table->Push(ids, Floats(ids.size() * table->options().dim, 1),
                     At(second), Add);
}

// Returns the first elements of the rows.
inline Floats Pull(Table* table, const Ids& ids, int64_t second = 0) {
  const size_t dim = table->options().dim;
  Floats all(ids.size() * dim);
  EXPECT_TRUE(table->Pull(ids, At(second), absl::MakeSpan(all)).ok());
  Floats first;
  for (size_t i = 0; i < ids.size(); ++i) first.push_back(all[i * dim]);
  return first;
}

inline Ids Range(uint64_t begin, uint64_t end) {
  Ids ids;
  for (uint64_t id = begin; id < end; ++id) ids.push_back(id);
  return ids;
}

}  // namespace penstock::ps::sparse

#endif  // PENSTOCK_TESTS_PS_SPARSE_SMALL_TABLE_H_
