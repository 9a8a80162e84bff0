// Reads every byte of a tensor, as cheaply as memory allows.

#ifndef PENSTOCK_BENCH_TENSORS_SUM_H_
#define PENSTOCK_BENCH_TENSORS_SUM_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace penstock::bench {

// Returns the sum of the words of 64 bits, modulo 2^64; a word that is cut off
// at the end counts with zeroes. Proves that all has been read, and arrived.
uint64_t SumOf(absl::string_view bytes);

}  // namespace penstock::bench

#endif  // PENSTOCK_BENCH_TENSORS_SUM_H_
