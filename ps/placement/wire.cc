#include "ps/placement/wire.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ps/placement/validate.h"

namespace penstock::ps {
namespace {

v1::PlacedTable TableToMessage(const PlacedTable& table) {
  v1::PlacedTable message;
  message.set_name(table.layout.name);
  if (table.layout.kind == TableLayout::Kind::kSparse) {
    v1::SparsePlacement* sparse = message.mutable_sparse();
    sparse->set_row_bytes(table.layout.row_bytes);
    sparse->mutable_shard_servers()->Add(table.shard_servers.begin(),
                                         table.shard_servers.end());
    return message;
  }
  v1::DensePlacement* dense = message.mutable_dense();
  dense->set_rows(table.layout.rows);
  dense->set_row_bytes(table.layout.row_bytes);
  for (const RowRange& range : table.ranges) {
    v1::RowRange* each = dense->add_ranges();
    each->set_first_row(range.first);
    each->set_rows(range.rows);
    each->set_server(range.server);
  }
  return message;
}

PlacedTable DenseFromMessage(const v1::DensePlacement& message) {
  PlacedTable table;
  table.layout.rows = message.rows();
  table.layout.row_bytes = message.row_bytes();
  table.ranges.reserve(message.ranges_size());
  for (const v1::RowRange& range : message.ranges()) {
    table.ranges.push_back({range.first_row(), range.rows(), range.server()});
  }
  return table;
}

PlacedTable SparseFromMessage(const v1::SparsePlacement& message) {
  PlacedTable table;
  table.layout.kind = TableLayout::Kind::kSparse;
  table.layout.row_bytes = message.row_bytes();
  table.shard_servers.assign(message.shard_servers().begin(),
                             message.shard_servers().end());
  return table;
}

}  // namespace

v1::PlacementMap ToMessage(const PlacementMap& map) {
  v1::PlacementMap message;
  message.set_epoch(map.epoch());
  for (const std::string& server : map.servers()) message.add_servers(server);
  for (const PlacedTable& table : map.tables()) {
    *message.add_tables() = TableToMessage(table);
  }
  return message;
}

absl::StatusOr<PlacementMap> FromMessage(const v1::PlacementMap& message) {
  const size_t count = message.tables().size();
  if (count > PlacementMap::kMaxTables) {
    return absl::InvalidArgumentError(absl::StrCat(
        "placement: ", count, " tables, more than ", PlacementMap::kMaxTables));
  }
  std::vector<PlacedTable> tables;
  tables.reserve(count);
  for (const v1::PlacedTable& each : message.tables()) {
    switch (each.placement_case()) {
      case v1::PlacedTable::kDense:
        tables.push_back(DenseFromMessage(each.dense()));
        break;
      case v1::PlacedTable::kSparse:
        tables.push_back(SparseFromMessage(each.sparse()));
        break;
      case v1::PlacedTable::PLACEMENT_NOT_SET:
        return absl::InvalidArgumentError(
            absl::StrCat("placement of table ", Quoted(each.name()),
                         ": it is neither dense nor sparse"));
    }
    tables.back().layout.name = each.name();
  }
  std::vector<std::string> servers(message.servers().begin(),
                                   message.servers().end());
  return PlacementMap::FromParts(message.epoch(), std::move(servers),
                                 std::move(tables));
}

}  // namespace penstock::ps
