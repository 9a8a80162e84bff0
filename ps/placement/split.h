// Splits a request for many ids by server.

#ifndef PENSTOCK_PS_PLACEMENT_SPLIT_H_
#define PENSTOCK_PS_PLACEMENT_SPLIT_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "ps/placement/placement_map.h"

namespace penstock::ps {

// The ids of a request, grouped by server. Stores indices into the request's
// list of ids; each group keeps the order of the list. Used to gather ids and
// gradients for the requests, and to scatter the answers.
struct SplitIds {
  std::vector<uint32_t> order;
  std::vector<size_t> begins;  // by server, and the end

  absl::Span<const uint32_t> Of(uint32_t server) const {
    return absl::MakeConstSpan(order).subspan(
        begins[server], begins[server + 1] - begins[server]);
  }
};

// Splits at most 2^32 - 1 ids of a sparse table. `servers` is the number of
// servers of the table's map.
SplitIds Split(const PlacedTable& table, absl::Span<const uint64_t> ids,
               size_t servers);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_PLACEMENT_SPLIT_H_
