#include "ps/placement/placement_map.h"

#include <algorithm>
#include <limits>
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

// Appends a range to `ranges`. Merges it with the last range if both are on the
// same server.
void Append(const RowRange& range, std::vector<RowRange>* ranges) {
  if (range.rows == 0) return;
  if (!ranges->empty() && ranges->back().server == range.server) {
    ranges->back().rows += range.rows;
  } else {
    ranges->push_back(range);
  }
}

// Returns `ranges` after rows [first, end) were moved to server `to`.
std::vector<RowRange> Moved(const std::vector<RowRange>& ranges, uint64_t first,
                            uint64_t end, uint32_t to) {
  std::vector<RowRange> moved;
  for (const RowRange& range : ranges) {
    const uint64_t range_end = range.first + range.rows;
    const uint64_t begin_inside = std::clamp(first, range.first, range_end);
    const uint64_t end_inside = std::clamp(end, range.first, range_end);
    Append({range.first, begin_inside - range.first, range.server}, &moved);
    Append({begin_inside, end_inside - begin_inside, to}, &moved);
    Append({end_inside, range_end - end_inside, range.server}, &moved);
  }
  return moved;
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

uint32_t PlacedTable::ServerOfRow(uint64_t row) const {
  auto behind = std::upper_bound(
      ranges.begin(), ranges.end(), row,
      [](uint64_t r, const RowRange& range) { return r < range.first; });
  return std::prev(behind)->server;
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
                    ": it is there twice, or out of order");
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

uint64_t PlacementMap::DenseBytesOn(uint32_t server) const {
  uint64_t bytes = 0;
  for (const PlacedTable& table : tables_) {
    for (const RowRange& range : table.ranges) {
      if (range.server == server) bytes += range.rows * table.layout.row_bytes;
    }
  }
  return bytes;
}

absl::Status PlacementMap::CheckEpoch(uint64_t epoch) const {
  if (epoch == epoch_) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "placement: the request goes by epoch ", epoch, ", this server by ",
      epoch_, epoch < epoch_ ? "; fetch the map anew" : "; it is behind"));
}

absl::StatusOr<PlacementMap> PlacementMap::Next() const {
  if (epoch_ == std::numeric_limits<uint64_t>::max()) {
    return Refuse(": there is no epoch after ", epoch_);
  }
  PlacementMap next = *this;
  ++next.epoch_;
  return next;
}

absl::StatusOr<PlacedTable*> PlacementMap::FindForMove(absl::string_view table,
                                                       Kind kind, uint32_t to) {
  auto* found = const_cast<PlacedTable*>(Find(table));
  if (found == nullptr) {
    return absl::NotFoundError(
        absl::StrCat("placement: no table ", Quoted(table)));
  }
  if (found->layout.kind != kind) {
    return Refuse(" of table ", Quoted(table), ": it has ",
                  kind == Kind::kDense ? "shards, no rows to move"
                                       : "rows, no shards to move");
  }
  if (to >= servers_.size()) {
    return Refuse(" of table ", Quoted(table), ": server ", to, " of ",
                  servers_.size());
  }
  return found;
}

absl::StatusOr<PlacementMap> PlacementMap::MoveRows(absl::string_view table,
                                                    uint64_t first,
                                                    uint64_t rows,
                                                    uint32_t to) const {
  absl::StatusOr<PlacementMap> next = Next();
  if (!next.ok()) return next;
  auto found = next->FindForMove(table, Kind::kDense, to);
  if (!found.ok()) return found.status();
  PlacedTable& placed = **found;
  const uint64_t all = placed.layout.rows;
  if (rows == 0 || first > all || rows > all - first) {
    return Refuse(" of table ", Quoted(table), ": ", rows, " rows from ", first,
                  " on, of ", all);
  }
  placed.ranges = Moved(placed.ranges, first, first + rows, to);
  return FromParts(next->epoch_, next->servers_, std::move(next->tables_));
}

absl::StatusOr<PlacementMap> PlacementMap::MoveShard(absl::string_view table,
                                                     uint32_t shard,
                                                     uint32_t to) const {
  absl::StatusOr<PlacementMap> next = Next();
  if (!next.ok()) return next;
  auto found = next->FindForMove(table, Kind::kSparse, to);
  if (!found.ok()) return found.status();
  PlacedTable& placed = **found;
  if (shard >= placed.shard_servers.size()) {
    return Refuse(" of table ", Quoted(table), ": shard ", shard, " of ",
                  placed.shard_servers.size());
  }
  placed.shard_servers[shard] = to;
  return next;
}

absl::StatusOr<PlacementMap> PlacementMap::AddServer(
    std::string address) const {
  absl::StatusOr<PlacementMap> next = Next();
  if (!next.ok()) return next;
  next->servers_.push_back(std::move(address));
  absl::Status status = CheckServers(next->servers_);
  if (!status.ok()) return status;
  return next;
}

absl::StatusOr<PlacementMap> PlacementMap::ReplaceServer(
    uint32_t server, std::string address) const {
  absl::StatusOr<PlacementMap> next = Next();
  if (!next.ok()) return next;
  if (server >= servers_.size()) {
    return Refuse(": server ", server, " of ", servers_.size());
  }
  next->servers_[server] = std::move(address);
  absl::Status status = CheckServers(next->servers_);
  if (!status.ok()) return status;
  return next;
}

}  // namespace penstock::ps
