#include "ps/server/held_gradients.h"

#include <algorithm>

namespace penstock::ps {

void HeldGradients::Keep(const PushId& push, Gradients gradients,
                         const std::vector<bool>& counted) {
  Entry entry;
  entry.policies =
      static_cast<size_t>(std::count(counted.begin(), counted.end(), true));
  if (entry.policies == 0) return;
  entry.bytes = gradients.held_bytes();
  entry.gradients = std::move(gradients);
  bytes_ += entry.bytes;
  entries_[{push.rank, push.clock}] = std::move(entry);
}

std::vector<Gradients*> HeldGradients::Of(absl::Span<const PushId> pushes) {
  std::vector<Gradients*> all;
  all.reserve(pushes.size());
  for (const PushId& push : pushes) {
    all.push_back(&entries_.at({push.rank, push.clock}).gradients);
  }
  return all;
}

std::vector<Gradients> HeldGradients::Drop(absl::Span<const PushId> pushes) {
  std::vector<Gradients> dropped;
  for (const PushId& push : pushes) {
    const auto entry = entries_.find({push.rank, push.clock});
    if (--entry->second.policies > 0) continue;
    bytes_ -= entry->second.bytes;
    dropped.push_back(std::move(entry->second.gradients));
    entries_.erase(entry);
  }
  return dropped;
}

size_t HeldGradients::BytesBehind(const CutPoint& cut) const {
  size_t bytes = 0;
  for (const auto& [key, entry] : entries_) {
    const auto& [rank, clock] = key;
    if (clock >= cut.ClockOf(rank)) bytes += entry.bytes;
  }
  return bytes;
}

}  // namespace penstock::ps
