// Validates a placement.

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

// Check the parts of a map. Return OK or INVALID_ARGUMENT; see
// PlacementMap::FromParts().
absl::Status CheckServers(absl::Span<const std::string> servers);
absl::Status CheckLayout(const TableLayout& layout);
absl::Status CheckTable(const PlacedTable& table, size_t servers);

// Adds the bytes of a dense table, whose layout was checked, to `*bytes`.
// Returns INVALID_ARGUMENT if the sum reaches 2^63: a server's bytes would
// overflow.
absl::Status AddBytes(const TableLayout& layout, uint64_t* bytes);

// Returns a printable form of a name, for messages. A peer may have chosen the
// name.
std::string Quoted(absl::string_view name);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_PLACEMENT_VALIDATE_H_
