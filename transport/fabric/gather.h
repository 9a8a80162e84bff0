// Decides what of a payload is exposed where it lies, and what is copied.

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

// Pieces of a payload, one after another, that become one part of its region:
// one piece, in place, or any number of others, copied.
struct Stretch {
  bool in_place = false;
  size_t first_piece = 0;
  size_t pieces = 0;
  size_t bytes = 0;
};

// Divides a payload into at most `max_parts` stretches, in order. Copies the
// pieces that are not `reachable`, of which there is one for each piece, and
// those below `min_bytes`, as a copy costs less than a part. Copies the
// smallest of the others, too, if there would be too many stretches. Pieces
// next to one another are copied as one stretch. Needs max_parts >= 1.
std::vector<Stretch> DivideIntoParts(const memory::Payload& payload,
                                     const std::vector<bool>& reachable,
                                     size_t min_bytes, size_t max_parts);

// Where the copies of some stretches lie in one block: each aligned as a block
// is, so that what was aligned in its stretch still is.
class GatheredLayout {
 public:
  // Returns where the next stretch begins.
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

// Returns the sizes of the parts that a copied stretch is announced as: one for
// each piece of `min_bytes` or more, and one for what lies between two of them,
// so that a receiver can put each piece where it wants it. All of it is one
// part if these would be more than `max_parts`. Needs max_parts >= 1.
std::vector<size_t> PartsOf(const memory::Payload& payload,
                            const Stretch& stretch, size_t min_bytes,
                            size_t max_parts);

// Appends `copied`, a copied stretch, in parts of those sizes.
void AppendParts(RemotePart copied, const std::vector<size_t>& sizes,
                 RemoteRegion* region);

// Returns the bytes that all copied stretches take in one block.
size_t GatheredBytes(const std::vector<Stretch>& stretches);

// Copies the stretches that are not in place to `out`, as GatheredLayout has
// them. Clears what lies between: a peer may be able to read that too. Fails
// only where a device does, whose memory is copied.
absl::Status Gather(const memory::Payload& payload,
                    const std::vector<Stretch>& stretches, uint8_t* out);

}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_GATHER_H_
