// The client in its own process. Measures the sizes of one (benchmark,
// transport, API) over one fresh connection.
//
// Each connection has a process of its own, because gRPC and Penstock keep
// process-wide state: threads, pollers, heap. A client that has just sent
// megabytes over one transport would poll differently for the 8 bytes of the
// next one.

#ifndef PENSTOCK_BENCH_RPC_CLIENT_ROLE_H_
#define PENSTOCK_BENCH_RPC_CLIENT_ROLE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "bench/rpc/cell.h"
#include "bench/rpc/child_process.h"
#include "bench/rpc/options.h"
#include "bench/rpc/report.h"

namespace penstock {
namespace bench {

// Starts a client process and waits for its results, one for each size, in
// their order. Returns UNAVAILABLE, with the reason, if the transport is not
// available. Any other error means that the transport broke, and names the
// cell.
absl::StatusOr<std::vector<RoundResult>> MeasureInChild(
    const RunOptions& options, Benchmark benchmark, Transport transport,
    Api api);

// Returns the child's next result, for whichever size. Blocks without a limit:
// the child's watchdog has one. `cell` is for the error.
absl::StatusOr<RoundResult> ReadResult(const Cell& cell, ChildProcess* process);

// That process's main(). `options` have one benchmark, transport and API.
[[noreturn]] void RunClientRole(const RunOptions& options);

}  // namespace bench
}  // namespace penstock

#endif  // PENSTOCK_BENCH_RPC_CLIENT_ROLE_H_
