// What a placement has to be.

#ifndef PENSTOCK_PS_PLACEMENT_VALIDATE_H_
#define PENSTOCK_PS_PLACEMENT_VALIDATE_H_

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

// A name as messages have it: a peer may have chosen it.
std::string Quoted(absl::string_view name);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_PLACEMENT_VALIDATE_H_
