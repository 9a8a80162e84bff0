// Selects the memory of a client's or a server's messages.

#ifndef PENSTOCK_BENCH_RPC_SETUP_PREPARE_MEMORY_H_
#define PENSTOCK_BENCH_RPC_SETUP_PREPARE_MEMORY_H_

#include "absl/status/status.h"
#include "bench/rpc/setup/options.h"

namespace penstock {
namespace bench {

// Allocates this process's messages in the memory that `options` select. Call
// it before the first channel or server; repeated calls are allowed. Returns
// UNAVAILABLE, with the remedy, if the memory is not available.
absl::Status PrepareMemory(const RunOptions& options);

}  // namespace bench
}  // namespace penstock

#endif  // PENSTOCK_BENCH_RPC_SETUP_PREPARE_MEMORY_H_
