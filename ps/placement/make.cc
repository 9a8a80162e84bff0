// Assigns tables to servers for the first time.

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ps/placement/placement_map.h"
#include "ps/placement/validate.h"

namespace penstock::ps {
namespace {

using Kind = TableLayout::Kind;

// Pairs of assigned bytes and server, sorted by bytes.
using Loads = std::set<std::pair<uint64_t, uint32_t>>;

// Returns a / b, rounded up.
uint64_t Quotient(uint64_t a, uint64_t b) { return a / b + (a % b != 0); }

uint64_t PartsOf(const TableLayout& layout, size_t servers,
                 uint64_t split_bytes) {
  if (layout.rows == 0 || layout.row_bytes == 0) return 1;
  const uint64_t rows = std::max<uint64_t>(1, split_bytes / layout.row_bytes);
  return std::min<uint64_t>(servers, Quotient(layout.rows, rows));
}

uint64_t LargestPart(const TableLayout& layout, uint64_t parts) {
  return Quotient(layout.rows, parts) * layout.row_bytes;
}

std::vector<RowRange> DealRows(const TableLayout& layout, uint64_t parts,
                               Loads* loads) {
  std::vector<RowRange> ranges;
  std::vector<std::pair<uint64_t, uint32_t>> taken;
  uint64_t first = 0;
  for (uint64_t i = 0; i < parts; ++i) {
    const uint64_t rows =
        layout.rows / parts + (i < layout.rows % parts ? 1 : 0);
    const auto [load, server] = *loads->begin();
    loads->erase(loads->begin());
    taken.push_back({load + rows * layout.row_bytes, server});
    ranges.push_back({first, rows, server});
    first += rows;
  }
  loads->insert(taken.begin(), taken.end());
  return ranges;
}

struct Item {
  PlacedTable* table;
  uint64_t parts;
  uint64_t bytes;  // of the largest part
};

void DealDense(std::vector<Item> items, size_t servers) {
  // Uses a stable sort, so that tables of the same size stay sorted by name.
  std::stable_sort(
      items.begin(), items.end(),
      [](const Item& a, const Item& b) { return a.bytes > b.bytes; });
  Loads loads;
  for (uint32_t server = 0; server < servers; ++server) {
    loads.insert({0, server});
  }
  for (const Item& item : items) {
    item.table->ranges = DealRows(item.table->layout, item.parts, &loads);
  }
}

void DealShards(PlacedTable* table, size_t servers, size_t* next) {
  for (uint32_t shard = 0; shard < PlacementMap::kShards; ++shard) {
    table->shard_servers.push_back(static_cast<uint32_t>((*next)++ % servers));
  }
}

absl::Status CheckLayouts(absl::Span<const TableLayout> layouts) {
  uint64_t bytes = 0;
  for (const TableLayout& layout : layouts) {
    absl::Status status = CheckLayout(layout);
    if (status.ok()) status = AddBytes(layout, &bytes);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<PlacementMap> PlacementMap::Make(
    absl::Span<const TableLayout> tables, std::vector<std::string> servers,
    const Options& options) {
  absl::Status status = CheckServers(servers);
  if (!status.ok()) return status;
  if (options.split_bytes == 0) {
    return absl::InvalidArgumentError("placement: split_bytes is 0");
  }
  status = CheckLayouts(tables);
  if (!status.ok()) return status;
  std::vector<PlacedTable> placed;
  for (const TableLayout& layout : tables) placed.push_back({layout, {}, {}});
  std::sort(placed.begin(), placed.end(), [](const auto& a, const auto& b) {
    return a.layout.name < b.layout.name;
  });

  std::vector<Item> dense;
  size_t next = 0;
  size_t parts_in_all = 0;
  for (PlacedTable& table : placed) {
    const TableLayout& layout = table.layout;
    const bool is_dense = layout.kind == Kind::kDense;
    const uint64_t parts =
        is_dense ? PartsOf(layout, servers.size(), options.split_bytes)
                 : kShards;
    parts_in_all += parts;
    if (parts_in_all > kMaxParts) {
      return absl::InvalidArgumentError(
          absl::StrCat("placement of table ", Quoted(layout.name),
                       ": with it, all have more than ", kMaxParts, " parts"));
    }
    if (is_dense) {
      dense.push_back({&table, parts, LargestPart(layout, parts)});
    } else {
      DealShards(&table, servers.size(), &next);
    }
  }
  DealDense(std::move(dense), servers.size());
  return FromParts(1, std::move(servers), std::move(placed));
}

}  // namespace penstock::ps
