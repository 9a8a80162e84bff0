// Reads every byte of a tensor at memory speed.

#ifndef PENSTOCK_BENCH_TENSORS_SUM_H_
#define PENSTOCK_BENCH_TENSORS_SUM_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace penstock::bench {

// Returns the sum of the 64-bit words, modulo 2^64. The last word is padded
// with zeroes. Proves that all bytes have arrived and were read.
uint64_t SumOf(absl::string_view bytes);

}  // namespace penstock::bench

#endif  // PENSTOCK_BENCH_TENSORS_SUM_H_
