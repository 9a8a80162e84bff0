#include "ps/placement/split.h"

namespace penstock::ps {

// Groups the ids by server. Uses a counting sort that hashes each id once.
SplitIds Split(const PlacedTable& table, absl::Span<const uint64_t> ids,
               size_t servers) {
  std::vector<uint16_t> server_of(ids.size());
  static_assert(PlacementMap::kMaxServers <= 65536, "fits 16 bits");
  SplitIds split;
  split.begins.assign(servers + 1, 0);
  for (size_t i = 0; i < ids.size(); ++i) {
    server_of[i] = static_cast<uint16_t>(table.ServerOfId(ids[i]));
    ++split.begins[server_of[i] + 1];
  }
  for (size_t server = 0; server < servers; ++server) {
    split.begins[server + 1] += split.begins[server];
  }
  split.order.resize(ids.size());
  std::vector<size_t> next(split.begins);
  for (size_t i = 0; i < ids.size(); ++i) {
    split.order[next[server_of[i]]++] = static_cast<uint32_t>(i);
  }
  return split;
}

}  // namespace penstock::ps
