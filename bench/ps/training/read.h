// Reads large values in parallel, like a server.

#ifndef PENSTOCK_BENCH_PS_TRAINING_READ_H_
#define PENSTOCK_BENCH_PS_TRAINING_READ_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "ps/optim/workers.h"

namespace penstock::bench {

// The number of bytes that one task reads, as in a server's steps.
inline constexpr size_t kTaskBytes = size_t{256} << 10;

// Reads every byte with all threads. Returns SumOf() of the bytes.
uint64_t ReadAll(absl::string_view bytes, const ps::optim::Workers& workers);

}  // namespace penstock::bench

#endif  // PENSTOCK_BENCH_PS_TRAINING_READ_H_
