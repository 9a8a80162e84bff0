#include "ps/server/local_model.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "transport/base/printable.h"

namespace penstock::ps {
namespace {

constexpr size_t kMaxNameBytesShown = 100;

std::string Shown(absl::string_view table) {
  return absl::StrCat("table ", base::Printable(table, kMaxNameBytesShown));
}

absl::Status CheckPlacement(const TableSpec& table,
                            const PlacementMap& placement) {
  const PlacedTable* const placed = placement.Find(table.name);
  const absl::StatusOr<TableLayout> layout = LayoutOf(table);
  if (!layout.ok()) return layout.status();
  if (placed != nullptr && placed->layout.kind == layout->kind &&
      placed->layout.rows == layout->rows &&
      placed->layout.row_bytes == layout->row_bytes) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      Shown(table.name), ": the placement is of another model: there it ",
      placed == nullptr ? "is not" : "has other rows"));
}

}  // namespace

absl::StatusOr<LocalModel> LocalModel::Create(Model model,
                                              const PlacementMap& placement,
                                              uint32_t server) {
  absl::Status status = CheckModel(model);
  if (!status.ok()) return status;
  if (server >= placement.servers().size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "there is no server ", server, " among ", placement.servers().size()));
  }
  if (placement.tables().size() != model.tables.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the placement is of another model: it has ", placement.tables().size(),
        " tables, the model ", model.tables.size()));
  }
  LocalModel local;
  local.model_ = std::move(model);
  for (size_t i = 0; i < local.model_.tables.size(); ++i) {
    const TableSpec& table = local.model_.tables[i];
    status = CheckPlacement(table, placement);
    if (!status.ok()) return status;
    const PlacedTable& placed = *placement.Find(table.name);
    local.tables_[table.name] = i;
    if (table.is_dense()) {
      local.AddRanges(i, placed, server);
    } else if (std::count(placed.shard_servers.begin(),
                          placed.shard_servers.end(), server) > 0) {
      local.rows_of_[table.name] = local.rows_.size();
      local.rows_.push_back({i, local.PolicyFor(table)});
    }
  }
  if (local.policies_.empty()) local.AddPoliciesOfOthers();
  return local;
}

void LocalModel::AddPoliciesOfOthers() {
  for (const TableSpec& table : model_.tables) PolicyFor(table);
  if (policies_.empty()) policies_.emplace_back();
}

void LocalModel::AddRanges(size_t table, const PlacedTable& placed,
                           uint32_t server) {
  const TableSpec& spec = model_.tables[table];
  const auto& dense = absl::get<DenseSpec>(spec.rows);
  for (const RowRange& range : placed.ranges) {
    if (range.server != server) continue;
    LocalRange local;
    local.name = base::Printable(spec.name, kMaxNameBytesShown);
    local.table = table;
    local.policy = PolicyFor(spec);
    local.first_row = range.first;
    local.shape = dense.shape;
    if (range.rows != placed.layout.rows) {
      absl::StrAppend(&local.name, "[", range.first, ":",
                      range.first + range.rows, "]");
      local.shape[0] = static_cast<int64_t>(range.rows);
    }
    ranges_of_[spec.name].push_back(ranges_.size());
    ranges_.push_back(std::move(local));
  }
}

size_t LocalModel::PolicyFor(const TableSpec& table) {
  const ConsistencyPolicy::Options wanted = PolicyOf(table);
  const auto found =
      std::find_if(policies_.begin(), policies_.end(),
                   [&wanted](const ConsistencyPolicy::Options& policy) {
                     return policy.staleness == wanted.staleness &&
                            policy.backup_workers == wanted.backup_workers;
                   });
  const auto place = static_cast<size_t>(found - policies_.begin());
  if (found == policies_.end()) policies_.push_back(wanted);
  return place;
}

absl::Status LocalModel::NotHere(absl::string_view table) const {
  const auto found = tables_.find(table);
  return absl::NotFoundError(
      absl::StrCat(Shown(table), ": ",
                   found == tables_.end() ? "the model has no such table"
                   : !model_.tables[found->second].is_dense()
                       ? "it is sparse, and this server has no ids of it"
                       : "it is dense, and has no ids"));
}

absl::StatusOr<size_t> LocalModel::FindRows(absl::string_view table) const {
  const auto found = rows_of_.find(table);
  if (found == rows_of_.end()) return NotHere(table);
  return found->second;
}

const std::vector<size_t>& LocalModel::RangesOf(absl::string_view table) const {
  static const auto* const kNone = new std::vector<size_t>;
  const auto found = ranges_of_.find(table);
  return found == ranges_of_.end() ? *kNone : found->second;
}

}  // namespace penstock::ps
