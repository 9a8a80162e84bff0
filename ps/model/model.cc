#include "ps/model/model.h"

#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "ps/optim/dense.h"
#include "transport/base/printable.h"

namespace penstock::ps {
namespace {

constexpr size_t kMaxNameBytesShown = 100;

absl::Status Refuse(const TableSpec& table, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(
      "table ", base::Printable(table.name, kMaxNameBytesShown), ": ", why));
}

absl::Status CheckRows(const TableSpec& table) {
  if (table.is_dense()) {
    const auto& dense = absl::get<DenseSpec>(table.rows);
    const absl::Status trainable = optim::CheckTrainable(dense.dtype);
    return trainable.ok() ? LayoutOf(table).status() : trainable;
  }
  sparse::Options options = OptionsOf(table);
  options.name = "rows";
  const absl::Status status = sparse::Validate(options);
  // Remove the placeholder from the message, because the caller adds the
  // table's name.
  return absl::Status(
      status.code(),
      absl::StripPrefix(status.message(), "sparse table 'rows': "));
}

absl::Status CheckTable(const TableSpec& table) {
  if (table.name.empty()) return absl::InvalidArgumentError("it has no name");
  if (table.name.size() > PlacementMap::kMaxNameBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("its name has ", table.name.size(), " bytes, more than ",
                     PlacementMap::kMaxNameBytes));
  }
  absl::Status rule = optim::Optimizer::Create(table.optimizer).status();
  if (!rule.ok()) return rule;
  const absl::Status policy =
      ConsistencyPolicy::Create(PolicyOf(table)).status();
  return policy.ok() ? CheckRows(table) : policy;
}

}  // namespace

const TableSpec* Model::Find(absl::string_view name) const {
  for (const TableSpec& table : tables) {
    if (table.name == name) return &table;
  }
  return nullptr;
}

absl::Status CheckModel(const Model& model) {
  if (model.tables.size() > PlacementMap::kMaxTables) {
    return absl::InvalidArgumentError(
        absl::StrCat("the model has ", model.tables.size(),
                     " tables, more than ", PlacementMap::kMaxTables));
  }
  absl::flat_hash_set<absl::string_view> names;
  absl::flat_hash_set<std::pair<int64_t, uint32_t>> policies;
  for (const TableSpec& table : model.tables) {
    const absl::Status status = CheckTable(table);
    if (!status.ok()) return Refuse(table, status.message());
    if (!names.insert(table.name).second) {
      return Refuse(table, "another one has its name");
    }
    policies.insert({table.staleness, table.backup_workers});
    if (policies.size() > kMaxPolicies) {
      return Refuse(table,
                    absl::StrCat("with it, there are more than ", kMaxPolicies,
                                 " different staleness and backup_workers"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<TableLayout> LayoutOf(const TableSpec& table) {
  if (table.is_dense()) {
    const auto& dense = absl::get<DenseSpec>(table.rows);
    return DenseLayout(table.name, dense.dtype, dense.shape);
  }
  return SparseLayout(table.name, uint64_t{sizeof(float)} *
                                      absl::get<SparseSpec>(table.rows).dim);
}

ConsistencyPolicy::Options PolicyOf(const TableSpec& table) {
  ConsistencyPolicy::Options options;
  options.staleness = table.staleness;
  options.backup_workers = table.backup_workers;
  return options;
}

sparse::Options OptionsOf(const TableSpec& table) {
  const auto& spec = absl::get<SparseSpec>(table.rows);
  sparse::Options options;
  options.name = table.name;
  options.dim = spec.dim;
  options.initial = spec.initial;
  options.seed = spec.seed;
  options.min_count = spec.min_count;
  options.time_to_live = spec.time_to_live;
  options.max_rows = spec.max_rows;
  options.budget_bytes = spec.budget_bytes;
  options.above_budget = spec.above_budget;
  const auto optimizer = optim::Optimizer::Create(table.optimizer);
  if (!optimizer.ok()) return options;
  for (const optim::Slot& slot : (*optimizer)->slots()) {
    options.initial_slots.push_back(static_cast<float>(slot.initial));
  }
  return options;
}

}  // namespace penstock::ps
