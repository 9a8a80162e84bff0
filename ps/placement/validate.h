// What a placement has to be.

#ifndef PENSTOCK_PS_PLACEMENT_VALIDATE_H_
#define PENSTOCK_PS_PLACEMENT_VALIDATE_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ps/placement/placement_map.h"

namespace penstock::ps {

// Each returns OK or INVALID_ARGUMENT; see PlacementMap::FromParts().
absl::Status CheckServers(absl::Span<const std::string> servers);
absl::Status CheckLayout(const TableLayout& layout);
absl::Status CheckTable(const PlacedTable& table, size_t servers);

// Adds the bytes of a dense table, whose layout was checked, to those of the
// tables before it. Returns INVALID_ARGUMENT if all have 2^63 bytes or more:
// the bytes of a server could not be counted.
absl::Status AddBytes(const TableLayout& layout, uint64_t* bytes);

// A name as messages have it: a peer may have chosen it.
std::string Quoted(absl::string_view name);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_PLACEMENT_VALIDATE_H_
