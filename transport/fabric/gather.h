// Decides which pieces of a payload are exposed in place, and which are copied.

#ifndef PENSTOCK_TRANSPORT_FABRIC_GATHER_H_
#define PENSTOCK_TRANSPORT_FABRIC_GATHER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "transport/fabric/fabric.h"
#include "transport/memory/bytes.h"

namespace penstock {
namespace fabric {

// A stretch of a payload: consecutive pieces that become one part of the
// region. A stretch is either one piece that is not copied, or any number of
// copied pieces.
struct Stretch {
  bool in_place = false;
  size_t first_piece = 0;
  size_t pieces = 0;
  size_t bytes = 0;
};

// Divides a payload into at most `max_parts` stretches, in order. `reachable`
// has one element for each piece. Copies pieces that are not reachable, and
// pieces below `min_bytes`, because a copy costs less than a part. If there are
// too many stretches, also copies the smallest of the remaining pieces.
// Adjacent copied pieces become one stretch. Requires max_parts >= 1.
std::vector<Stretch> DivideIntoParts(const memory::Payload& payload,
                                     const std::vector<bool>& reachable,
                                     size_t min_bytes, size_t max_parts);

// The layout of copied stretches in one block. Each stretch is aligned like a
// block, so that pieces keep their alignment.
class GatheredLayout {
 public:
  // Adds a stretch, and returns its offset.
  size_t Add(size_t bytes) {
    constexpr size_t kAlignment = 64;
    const size_t begin = (size_ + kAlignment - 1) / kAlignment * kAlignment;
    size_ = begin + bytes;
    return begin;
  }
  size_t size() const { return size_; }

 private:
  size_t size_ = 0;
};

// Divides the copy of a stretch into parts, so that a receiver can read each
// large piece of the payload into separate memory. Returns the size of each
// part. A piece of `min_bytes` or more is one part. The bytes between two such
// pieces are one part. If there would be more than `max_parts`, returns one
// part for the whole stretch. Requires max_parts >= 1.
std::vector<size_t> PartsOf(const memory::Payload& payload,
                            const Stretch& stretch, size_t min_bytes,
                            size_t max_parts);

// Splits `copied`, the copy of a stretch, into parts of the sizes that
// PartsOf() has returned. Appends the parts to `*region`.
void AppendParts(RemotePart copied, const std::vector<size_t>& sizes,
                 RemoteRegion* region);

// Returns the total size of all copied stretches in one block.
size_t GatheredBytes(const std::vector<Stretch>& stretches);

// Copies the stretches that are not in place to `out`, in the layout of
// GatheredLayout. Clears the gaps, because a peer may be able to read them too.
// Fails only if a copy from a device fails.
absl::Status Gather(const memory::Payload& payload,
                    const std::vector<Stretch>& stretches, uint8_t* out);

}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_GATHER_H_
