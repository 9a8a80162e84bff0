// Chooses elements of a gradient at random.

#ifndef PENSTOCK_PS_COMPRESSION_RANDOM_K_H_
#define PENSTOCK_PS_COMPRESSION_RANDOM_K_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "ps/random/philox.h"

namespace penstock::ps::compression {

// Fills `indices` with ascending distinct numbers from 0 to count - 1.
// indices.size() is at most `count`, which is below 2^31. Each set of k =
// indices.size() numbers is equally likely. The set depends only on key, step,
// count and k, and is the same on each machine.
//
// Takes time proportional to k and to count / 64, and count / 8 bytes. Marks
// drawn numbers, and draws again if a number is marked already. For k above
// half of `count`, marks the omitted numbers instead.
void SelectRandomK(size_t count, PhiloxKey key, uint64_t step,
                   absl::Span<int32_t> indices);

}  // namespace penstock::ps::compression

#endif  // PENSTOCK_PS_COMPRESSION_RANDOM_K_H_
