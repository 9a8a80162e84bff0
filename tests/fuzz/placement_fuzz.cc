// Tests that a placement map of a peer is refused, or complete.

#include <string>
#include <vector>

#include "ps/placement/placement_map.h"
#include "ps/placement/split.h"
#include "ps/placement/wire.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/target.h"

namespace penstock {
namespace fuzz {
namespace {

void CheckRows(const ps::PlacedTable& table, size_t servers) {
  uint64_t rows = 0;
  for (const ps::RowRange& range : table.ranges) {
    Require(range.first == rows, "ranges have no gap and no overlap");
    Require(range.server < servers, "a range has a server that there is");
    rows += range.rows;
  }
  Require(rows == table.layout.rows, "ranges have all rows");
}

void CheckIds(const ps::PlacedTable& table, size_t servers) {
  const std::vector<uint64_t> ids = {0, 1, ~uint64_t{0}};
  Require(ps::Split(table, ids, servers).order.size() == ids.size(),
          "each id has a server");
}

std::string SeedOf(size_t servers) {
  std::vector<std::string> names;
  for (size_t i = 0; i < servers; ++i) names.push_back("s" + std::to_string(i));
  const auto map =
      ps::PlacementMap::Make({{"w", ps::TableLayout::Kind::kDense, 9, 4},
                              {"none", ps::TableLayout::Kind::kDense, 0, 4},
                              ps::SparseLayout("ids", 8)},
                             names, {8});
  return ps::ToMessage(*map).SerializeAsString();
}

}  // namespace

std::vector<std::string> Seeds() { return {SeedOf(1), SeedOf(2), SeedOf(5)}; }

}  // namespace fuzz
}  // namespace penstock

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using penstock::fuzz::Require;
  penstock::ps::v1::PlacementMap message;
  if (!message.ParseFromArray(data, static_cast<int>(size))) return 0;
  const auto map = penstock::ps::FromMessage(message);
  if (!map.ok()) {
    Require(map.status().code() == absl::StatusCode::kInvalidArgument,
            "what is not whole is an invalid argument");
    return 0;
  }
  const size_t servers = map->servers().size();
  for (const penstock::ps::PlacedTable& table : map->tables()) {
    if (table.layout.kind == penstock::ps::TableLayout::Kind::kDense) {
      penstock::fuzz::CheckRows(table, servers);
    } else {
      penstock::fuzz::CheckIds(table, servers);
    }
  }
  Require(penstock::ps::ToMessage(*map).tables_size() == message.tables_size(),
          "a map that is taken is the one that was sent");
  return 0;
}
