#include "ps/placement/validate.h"

#include <limits>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace penstock::ps {
namespace {

constexpr size_t kMostQuoted = 64;
constexpr uint64_t kMaxTableBytes = std::numeric_limits<int64_t>::max();

template <typename... Parts>
absl::Status Refuse(const TableLayout& layout, const Parts&... what) {
  return absl::InvalidArgumentError(
      absl::StrCat("placement of table ", Quoted(layout.name), ": ", what...));
}

absl::Status CheckRanges(const PlacedTable& table, size_t servers) {
  const TableLayout& layout = table.layout;
  if (!table.shard_servers.empty()) {
    return Refuse(layout, "a dense table has shards");
  }
  if (table.ranges.empty()) return Refuse(layout, "it has no ranges");
  uint64_t next = 0;
  for (size_t i = 0; i < table.ranges.size(); ++i) {
    const RowRange& range = table.ranges[i];
    if (range.server >= servers) {
      return Refuse(layout, "rows from ", range.first, " are at server ",
                    range.server, " of ", servers);
    }
    if (range.first != next) {
      return Refuse(layout, "a range begins at row ", range.first, ", not at ",
                    next);
    }
    if (range.rows > layout.rows - next) {
      return Refuse(layout, "a range from row ", range.first, " has ",
                    range.rows, " rows, of ", layout.rows, " in all");
    }
    if (range.rows == 0 && layout.rows > 0) {
      return Refuse(layout, "the range from row ", range.first, " is empty");
    }
    if (i > 0 &&
        (range.rows == 0 || table.ranges[i - 1].server == range.server)) {
      return Refuse(layout, "the range from row ", range.first,
                    " and the one before it are one");
    }
    next += range.rows;
  }
  if (next == layout.rows) return absl::OkStatus();
  return Refuse(layout, "rows from ", next, " on are nowhere");
}

absl::Status CheckShards(const PlacedTable& table, size_t servers) {
  const TableLayout& layout = table.layout;
  if (!table.ranges.empty()) return Refuse(layout, "a sparse table has ranges");
  const size_t shards = table.shard_servers.size();
  if (shards == 0 || shards > PlacementMap::kMaxShards) {
    return Refuse(layout, "it has ", shards, " shards, not 1 to ",
                  PlacementMap::kMaxShards);
  }
  for (size_t i = 0; i < shards; ++i) {
    if (table.shard_servers[i] >= servers) {
      return Refuse(layout, "shard ", i, " is at server ",
                    table.shard_servers[i], " of ", servers);
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::string Quoted(absl::string_view name) {
  const bool is_long = name.size() > kMostQuoted;
  return absl::StrCat("'", absl::CHexEscape(name.substr(0, kMostQuoted)),
                      is_long ? "...'" : "'");
}

absl::Status CheckServers(absl::Span<const std::string> servers) {
  if (servers.empty() || servers.size() > PlacementMap::kMaxServers) {
    return absl::InvalidArgumentError(
        absl::StrCat("placement: ", servers.size(), " servers, not 1 to ",
                     PlacementMap::kMaxServers));
  }
  absl::flat_hash_set<absl::string_view> seen;
  for (const std::string& address : servers) {
    if (address.empty() || address.size() > PlacementMap::kMaxAddressBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("placement: an address of a server has ", address.size(),
                       " bytes, not 1 to ", PlacementMap::kMaxAddressBytes));
    }
    if (!seen.insert(address).second) {
      return absl::InvalidArgumentError(absl::StrCat(
          "placement: two servers have the address ", Quoted(address)));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckLayout(const TableLayout& layout) {
  if (layout.name.empty() || layout.name.size() > PlacementMap::kMaxNameBytes) {
    return Refuse(layout, "its name has ", layout.name.size(),
                  " bytes, not 1 to ", PlacementMap::kMaxNameBytes);
  }
  const bool is_dense = layout.kind == TableLayout::Kind::kDense;
  if (!is_dense && layout.rows != 0) {
    return Refuse(layout, "a sparse table has ", layout.rows, " rows");
  }
  const uint64_t rows = is_dense ? layout.rows : 1;
  const bool is_large = rows > kMaxTableBytes ||
                        (rows > 0 && layout.row_bytes > kMaxTableBytes / rows);
  if (!is_large) return absl::OkStatus();
  return Refuse(layout, rows, " rows of ", layout.row_bytes,
                " bytes are more than can be");
}

absl::Status AddBytes(const TableLayout& layout, uint64_t* bytes) {
  *bytes += layout.rows * layout.row_bytes;
  if (*bytes <= kMaxTableBytes) return absl::OkStatus();
  return Refuse(layout, "with it, all have more bytes than can be");
}

absl::Status CheckTable(const PlacedTable& table, size_t servers) {
  absl::Status status = CheckLayout(table.layout);
  if (!status.ok()) return status;
  return table.layout.kind == TableLayout::Kind::kDense
             ? CheckRanges(table, servers)
             : CheckShards(table, servers);
}

}  // namespace penstock::ps
