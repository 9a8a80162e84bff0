// Blocks of elements as int8 and a scale, rounded at random so that nothing is
// lost on average.

#ifndef PENSTOCK_PS_COMPRESSION_INT8_H_
#define PENSTOCK_PS_COMPRESSION_INT8_H_

#include <cstddef>
#include <cstdint>

#include "ps/random/philox.h"

namespace penstock::ps::compression {

// Which random numbers a block has: those of Philox with `key` and a counter
// that is made of the block's number in its gradient and of the step.
struct Rounding {
  PhiloxKey key = {};
  uint64_t step = 0;
};

// Quantizes `blocks` blocks of kBlock finite elements, whose first has number
// `first` in its gradient. `values` is aligned to 64 bytes.
//
// For a block with the largest magnitude m, the scale is m / 127, rounded so
// that 127 times the scale is not above m, and not below 2^-126, so that it has
// all its digits. An element x lies at y = x / scale, from -127 to 127, and
// becomes floor(y), or one more if u < y - floor(y), where u is uniform in
// (0, 1) (stochastic rounding; D. Alistarh et al., "QSGD", NIPS 2017, has it
// for gradients). Its mean is y, but for 2^-17, as u has 16 bits, and for the
// rounding of f32; both are as an f32's rounding of m.
//
// u is (h + 1/2) / 2^16. Number the words of the block's 32 Philox counters
// (low and high half of 32 * block + j, then of the step; j from 0 to 31) so
// that word w of counter j is number 32 w + j. Element e has as h the low half
// of word e if e < 128, and else the high half of word e - 128.
//
// Same inputs give the same bits on each processor.
void QuantizeBlocks(const float* values, size_t blocks, uint64_t first,
                    const Rounding& rounding, int8_t* elements, float* scales);

// Writes the `count` elements times their blocks' scales. The first begins a
// block. Nothing need be aligned.
void DequantizeBlocks(const void* elements, const void* scales, size_t count,
                      float* values);

}  // namespace penstock::ps::compression

#endif  // PENSTOCK_PS_COMPRESSION_INT8_H_
