// A model: its tables, how each is updated, and how stale its values may be.

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

// The type and shape of a dense tensor. All its rows exist from the beginning.
struct DenseSpec {
  tensor::DType dtype = tensor::DType::kF32;
  tensor::Shape shape;
};

// The settings of a sparse table: rows of f32, by 64-bit ids. sparse::Options
// explains the fields. The limits hold for each server.
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
  int64_t staleness = 0;  // in steps; ConsistencyPolicy::kUnlimited: no limit
  uint32_t backup_workers = 0;

  bool is_dense() const { return absl::holds_alternative<DenseSpec>(rows); }
};

// Limits the pairs of staleness and backup workers in a model. Each push checks
// all policies of a server, so policies must be few.
inline constexpr size_t kMaxPolicies = 64;

struct Model {
  std::vector<TableSpec> tables;  // in any order

  // Returns the table with this name, or null. Takes linear time.
  const TableSpec* Find(absl::string_view name) const;
};

// Returns OK if a server can serve each table, all names differ, and there are
// at most kMaxPolicies pairs of staleness and backup workers. Otherwise returns
// INVALID_ARGUMENT, which names the table and the flaw.
absl::Status CheckModel(const Model& model);

// Returns the table's layout, for its placement.
absl::StatusOr<TableLayout> LayoutOf(const TableSpec& table);
// Returns the table's consistency options.
ConsistencyPolicy::Options PolicyOf(const TableSpec& table);
// Returns a server's options for the sparse table, without the server's own
// secret and memory.
sparse::Options OptionsOf(const TableSpec& table);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_MODEL_MODEL_H_
