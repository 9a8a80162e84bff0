// The elements of greatest magnitude.

#ifndef PENSTOCK_PS_COMPRESSION_TOP_K_H_
#define PENSTOCK_PS_COMPRESSION_TOP_K_H_

#include <cstdint>

#include "absl/types/span.h"
#include "ps/optim/workers.h"

namespace penstock::ps::compression {

// Writes the indices, ascending, of as many values as `indices` has room for:
// those of greatest magnitude, exactly, and of equal ones those of the lowest
// index. There is room for no more than there are values, which are below 2^31
// and none of them NaN.
//
// Takes linear time, whatever the values are, and 8 KiB for each 512 KiB of
// them that are begun: a radix selection, by histograms of the first 11 bits of
// the magnitudes, then of the next 10 of those that share the first, and of the
// last 10. The result does not depend on the number of threads.
void SelectTopK(absl::Span<const float> values, const optim::Workers& workers,
                absl::Span<int32_t> indices);

}  // namespace penstock::ps::compression

#endif  // PENSTOCK_PS_COMPRESSION_TOP_K_H_
