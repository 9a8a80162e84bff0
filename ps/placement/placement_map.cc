#include "ps/placement/placement_map.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ps/placement/hash.h"
#include "ps/placement/validate.h"

namespace penstock::ps {
namespace {

using Kind = TableLayout::Kind;

template <typename... Parts>
absl::Status Refuse(const Parts&... what) {
  return absl::InvalidArgumentError(absl::StrCat("placement", what...));
}

}  // namespace

absl::StatusOr<TableLayout> DenseLayout(std::string name, tensor::DType dtype,
                                        const tensor::Shape& shape) {
  absl::StatusOr<size_t> bytes = tensor::ByteSize(dtype, shape);
  if (!bytes.ok()) {
    return Refuse(" of table ", Quoted(name), ": ", bytes.status().message());
  }
  TableLayout layout;
  layout.name = std::move(name);
  layout.rows = shape.empty() ? 1 : static_cast<uint64_t>(shape[0]);
  layout.row_bytes = layout.rows == 0 ? 0 : *bytes / layout.rows;
  return layout;
}

TableLayout SparseLayout(std::string name, uint64_t row_bytes) {
  return {std::move(name), Kind::kSparse, 0, row_bytes};
}

uint32_t PlacedTable::ServerOfId(uint64_t id) const {
  return shard_servers[ShardOf(id,
                               static_cast<uint32_t>(shard_servers.size()))];
}

absl::StatusOr<PlacementMap> PlacementMap::FromParts(
    uint64_t epoch, std::vector<std::string> servers,
    std::vector<PlacedTable> tables) {
  if (epoch == 0) return Refuse(": its epoch is 0");
  absl::Status status = CheckServers(servers);
  if (!status.ok()) return status;
  if (tables.size() > kMaxTables) {
    return Refuse(": ", tables.size(), " tables, more than ", kMaxTables);
  }
  size_t parts = 0;
  uint64_t bytes = 0;
  for (size_t i = 0; i < tables.size(); ++i) {
    status = CheckTable(tables[i], servers.size());
    if (status.ok()) status = AddBytes(tables[i].layout, &bytes);
    if (!status.ok()) return status;
    const std::string& name = tables[i].layout.name;
    if (i > 0 && tables[i - 1].layout.name >= name) {
      return Refuse(" of table ", Quoted(name),
                    ": it appears twice, or out of order");
    }
    parts += tables[i].ranges.size() + tables[i].shard_servers.size();
    if (parts > kMaxParts) {
      return Refuse(" of table ", Quoted(name),
                    ": with it, all have more than ", kMaxParts, " parts");
    }
  }
  PlacementMap map;
  map.epoch_ = epoch;
  map.servers_ = std::move(servers);
  map.tables_ = std::move(tables);
  return map;
}

const PlacedTable* PlacementMap::Find(absl::string_view table) const {
  auto found = std::lower_bound(tables_.begin(), tables_.end(), table,
                                [](const PlacedTable& a, absl::string_view b) {
                                  return a.layout.name < b;
                                });
  return found == tables_.end() || found->layout.name != table ? nullptr
                                                               : &*found;
}

absl::Status PlacementMap::CheckEpoch(uint64_t epoch) const {
  if (epoch == epoch_) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "placement: the request uses epoch ", epoch, ", this server uses ",
      epoch_, epoch < epoch_ ? "; fetch the map again" : "; it is behind"));
}

}  // namespace penstock::ps
