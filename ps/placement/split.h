// Takes a request for many ids apart, by server.

#ifndef PENSTOCK_PS_PLACEMENT_SPLIT_H_
#define PENSTOCK_PS_PLACEMENT_SPLIT_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "ps/placement/placement_map.h"

namespace penstock::ps {

// Places in the list of ids, those of server 0 first, each server's in the
// order of the list. Serves to gather ids and gradients for the requests, and
// to put the answers where they belong.
struct SplitIds {
  std::vector<uint32_t> order;
  std::vector<size_t> begins;  // of each server, and the end

  absl::Span<const uint32_t> Of(uint32_t server) const {
    return absl::MakeConstSpan(order).subspan(
        begins[server], begins[server + 1] - begins[server]);
  }
};

// Splits at most 2^32 - 1 ids of a sparse table. `servers` is the number of
// servers of its map.
SplitIds Split(const PlacedTable& table, absl::Span<const uint64_t> ids,
               size_t servers);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_PLACEMENT_SPLIT_H_
