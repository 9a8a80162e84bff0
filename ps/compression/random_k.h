// Elements chosen at random.

#ifndef PENSTOCK_PS_COMPRESSION_RANDOM_K_H_
#define PENSTOCK_PS_COMPRESSION_RANDOM_K_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "ps/random/philox.h"

namespace penstock::ps::compression {

// Writes as many of 0 to count - 1, ascending and without repeats, as `indices`
// has room for, which is no more than there are. Each set of so many is equally
// likely; which it is depends on key, step, count and k only, so it is the same
// on each machine. `count` is below 2^31.
//
// Takes a time in proportion to k and to count / 64, and count / 8 bytes: marks
// what is drawn, and draws again what is marked already. Of more than half it
// marks what is left out.
void SelectRandomK(size_t count, PhiloxKey key, uint64_t step,
                   absl::Span<int32_t> indices);

}  // namespace penstock::ps::compression

#endif  // PENSTOCK_PS_COMPRESSION_RANDOM_K_H_
