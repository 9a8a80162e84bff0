// Where the messages of a client or a server lie.

#ifndef PENSTOCK_BENCH_RPC_PREPARE_MEMORY_H_
#define PENSTOCK_BENCH_RPC_PREPARE_MEMORY_H_

#include "absl/status/status.h"
#include "bench/rpc/options.h"

namespace penstock {
namespace bench {

// Has this process's messages lie where `options` says. Call it before the
// first channel or server; it may be called again. Returns UNAVAILABLE, with
// the remedy, if they cannot.
absl::Status PrepareMemory(const RunOptions& options);

}  // namespace bench
}  // namespace penstock

#endif  // PENSTOCK_BENCH_RPC_PREPARE_MEMORY_H_
