// What is trained: the tables of a model, how each is updated, and how stale
// its values may be.

#ifndef PENSTOCK_PS_MODEL_MODEL_H_
#define PENSTOCK_PS_MODEL_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/variant.h"
#include "ps/consistency/policy.h"
#include "ps/optim/optimizer.h"
#include "ps/placement/placement_map.h"
#include "ps/sparse/initial_value.h"
#include "ps/sparse/options.h"
#include "tensor_service/tensor.h"

namespace penstock::ps {

// A tensor, all of which is there from the beginning.
struct DenseSpec {
  tensor::DType dtype = tensor::DType::kF32;
  tensor::Shape shape;
};

// Rows of f32 by 64-bit ids. sparse::Options says what the fields mean; the
// limits are those of each server.
struct SparseSpec {
  uint32_t dim = 0;
  sparse::Initial initial;
  uint64_t seed = 0;
  uint32_t min_count = 1;
  absl::Duration time_to_live = absl::InfiniteDuration();
  uint64_t max_rows = 0;
  uint64_t budget_bytes = 0;
  sparse::AboveBudget above_budget = sparse::AboveBudget::kRefuse;
};

struct TableSpec {
  std::string name;
  absl::variant<DenseSpec, SparseSpec> rows;
  optim::OptimizerConfig optimizer;
  int64_t staleness = 0;  // steps, or ConsistencyPolicy::kUnlimited
  uint32_t backup_workers = 0;

  bool is_dense() const { return absl::holds_alternative<DenseSpec>(rows); }
};

// Tables may differ in staleness and backup workers, but a push asks each
// policy of a server, so there are not as many policies as tables.
inline constexpr size_t kMaxPolicies = 64;

struct Model {
  std::vector<TableSpec> tables;  // in any order

  // Returns null if there is no such table. Takes linear time.
  const TableSpec* Find(absl::string_view name) const;
};

// Returns INVALID_ARGUMENT, which names the table and what is wrong, unless a
// server can serve each table, no two have the same name, and there are at most
// kMaxPolicies pairs of staleness and backup workers.
absl::Status CheckModel(const Model& model);

// What placement wants to know of the table.
absl::StatusOr<TableLayout> LayoutOf(const TableSpec& table);
// What consistency wants to know.
ConsistencyPolicy::Options PolicyOf(const TableSpec& table);
// What a server makes the sparse table with, but for the secret and the memory
// that are its own.
sparse::Options OptionsOf(const TableSpec& table);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_MODEL_MODEL_H_
