#include "transport/fabric/gather.h"

#include <algorithm>
#include <cstring>

namespace penstock {
namespace fabric {
namespace {

std::vector<Stretch> Divide(const memory::Payload& payload,
                            const std::vector<bool>& in_place) {
  std::vector<Stretch> stretches;
  for (size_t i = 0; i < payload.pieces().size(); ++i) {
    const bool joins =
        !in_place[i] && !stretches.empty() && !stretches.back().in_place;
    if (!joins) stretches.push_back(Stretch{in_place[i], i, 0, 0});
    ++stretches.back().pieces;
    stretches.back().bytes += payload.pieces()[i].size;
  }
  return stretches;
}

// Returns the stretches if the first `count` of `largest` stay in place.
std::vector<Stretch> LeaveLargest(const memory::Payload& payload,
                                  const std::vector<size_t>& largest,
                                  size_t count) {
  std::vector<bool> in_place(payload.pieces().size(), false);
  for (size_t i = 0; i < count; ++i) in_place[largest[i]] = true;
  return Divide(payload, in_place);
}

}  // namespace

std::vector<Stretch> DivideIntoParts(const memory::Payload& payload,
                                     const std::vector<bool>& reachable,
                                     size_t min_bytes, size_t max_parts) {
  const memory::Payload::Pieces& pieces = payload.pieces();
  std::vector<size_t> largest;  // pieces that may stay in place, the largest
                                // first
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (reachable[i] && pieces[i].size >= min_bytes) largest.push_back(i);
  }
  std::vector<Stretch> all = LeaveLargest(payload, largest, largest.size());
  if (all.size() <= max_parts) return all;
  std::stable_sort(largest.begin(), largest.end(), [&](size_t a, size_t b) {
    return pieces[a].size > pieces[b].size;
  });
  // Searches for the largest number of pieces that may stay uncopied. More
  // uncopied pieces make more stretches.
  size_t fit = 0;
  size_t too_many = largest.size();
  while (too_many - fit > 1) {
    const size_t middle = fit + (too_many - fit) / 2;
    const size_t parts = LeaveLargest(payload, largest, middle).size();
    (parts <= max_parts ? fit : too_many) = middle;
  }
  return LeaveLargest(payload, largest, fit);
}

std::vector<size_t> PartsOf(const memory::Payload& payload,
                            const Stretch& stretch, size_t min_bytes,
                            size_t max_parts) {
  std::vector<size_t> parts;
  bool joins = false;  // the last part has short pieces
  for (size_t i = 0; i < stretch.pieces; ++i) {
    const size_t size = payload.pieces()[stretch.first_piece + i].size;
    const bool is_short = size < min_bytes;
    if (joins && is_short) {
      parts.back() += size;
    } else {
      parts.push_back(size);
    }
    joins = is_short;
  }
  if (parts.size() > max_parts) return {stretch.bytes};
  return parts;
}

void AppendParts(RemotePart copied, const std::vector<size_t>& sizes,
                 RemoteRegion* region) {
  for (size_t size : sizes) {
    region->push_back({copied.key, copied.offset, size});
    copied.offset += size;
  }
}

size_t GatheredBytes(const std::vector<Stretch>& stretches) {
  GatheredLayout layout;
  for (const Stretch& stretch : stretches) {
    if (!stretch.in_place) layout.Add(stretch.bytes);
  }
  return layout.size();
}

absl::Status Gather(const memory::Payload& payload,
                    const std::vector<Stretch>& stretches, uint8_t* out) {
  GatheredLayout layout;
  for (const Stretch& stretch : stretches) {
    if (stretch.in_place) continue;
    const size_t end = layout.size();
    size_t at = layout.Add(stretch.bytes);
    std::memset(out + end, 0, at - end);
    for (size_t i = 0; i < stretch.pieces; ++i) {
      const memory::Bytes& piece = payload.pieces()[stretch.first_piece + i];
      absl::Status copied = piece.CopyTo(out + at);
      if (!copied.ok()) return copied;
      at += piece.size;
    }
  }
  return absl::OkStatus();
}

}  // namespace fabric
}  // namespace penstock
