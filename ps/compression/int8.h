// Encodes blocks of elements as int8 and a scale. Random rounding keeps the
// mean.

#ifndef PENSTOCK_PS_COMPRESSION_INT8_H_
#define PENSTOCK_PS_COMPRESSION_INT8_H_

#include <cstddef>
#include <cstdint>

#include "ps/random/philox.h"

namespace penstock::ps::compression {

// The source of a block's random numbers: Philox with `key` and a counter made
// of the step and of the block's number in its gradient.
struct Rounding {
  PhiloxKey key = {};
  uint64_t step = 0;
};

// Quantizes `blocks` blocks of kBlock finite elements. The first block has
// number `first` in its gradient. `values` is aligned to 64 bytes.
//
// For a block with the largest magnitude m, the scale is m / 127. The scale is
// rounded so that 127 times the scale does not exceed m. The scale is at least
// 2^-126, to keep all its digits. For an element x, y = x / scale is from -127
// to 127. The result is floor(y), plus 1 if u < y - floor(y). Here u is uniform
// in (0, 1) (stochastic rounding; D. Alistarh et al., "QSGD", NIPS 2017, use it
// for gradients). The mean of the result is y, with two errors: 2^-17, because
// u has 16 bits, and rounding. Both errors are comparable to an f32's rounding
// of m.
//
// u is (h + 1/2) / 2^16. A block has 32 Philox counters, made of the low and
// high half of 32 * block + j and of the step, for j from 0 to 31. Word w of
// counter j has number 32 w + j. For element e, h is the low half of word e if
// e < 128, otherwise the high half of word e - 128.
//
// The same inputs give the same bits on each processor.
void QuantizeBlocks(const float* values, size_t blocks, uint64_t first,
                    const Rounding& rounding, int8_t* elements, float* scales);

// Writes `count` elements, each multiplied by its block's scale. The first
// element begins a block. Accepts unaligned data.
void DequantizeBlocks(const void* elements, const void* scales, size_t count,
                      float* values);

}  // namespace penstock::ps::compression

#endif  // PENSTOCK_PS_COMPRESSION_INT8_H_
