// Looks up rows in a placement map, for tests.

#ifndef PENSTOCK_TESTS_PS_PLACEMENT_ROWS_H_
#define PENSTOCK_TESTS_PS_PLACEMENT_ROWS_H_

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "ps/placement/placement_map.h"

namespace penstock::ps {

// Returns the server that has a row of a dense table. The row must exist.
inline uint32_t ServerOfRow(const PlacedTable& table, uint64_t row) {
  const auto behind = std::upper_bound(
      table.ranges.begin(), table.ranges.end(), row,
      [](uint64_t r, const RowRange& range) { return r < range.first; });
  return std::prev(behind)->server;
}

// Returns the bytes of dense values on a server.
inline uint64_t DenseBytesOn(const PlacementMap& map, uint32_t server) {
  uint64_t bytes = 0;
  for (const PlacedTable& table : map.tables()) {
    for (const RowRange& range : table.ranges) {
      if (range.server == server) bytes += range.rows * table.layout.row_bytes;
    }
  }
  return bytes;
}

}  // namespace penstock::ps

#endif  // PENSTOCK_TESTS_PS_PLACEMENT_ROWS_H_
