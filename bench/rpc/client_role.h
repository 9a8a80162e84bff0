// A client process, which measures the sizes of one (benchmark, transport, API)
// over one new connection.
//
// Each connection has its own process, because gRPC and Penstock keep
// process-wide state: threads, pollers, heap. After sending megabytes over one
// transport, a client would poll differently for 8 bytes over the next one.

#ifndef PENSTOCK_BENCH_RPC_CLIENT_ROLE_H_
#define PENSTOCK_BENCH_RPC_CLIENT_ROLE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "bench/rpc/message/cell.h"
#include "bench/rpc/report/report.h"
#include "bench/rpc/setup/child_process.h"
#include "bench/rpc/setup/options.h"

namespace penstock {
namespace bench {

// Starts a client process, and waits for the results, one per size, in order.
// Returns UNAVAILABLE, with the reason, if the transport is not available. Any
// other error means that the transport broke; the error names the cell.
absl::StatusOr<std::vector<RoundResult>> MeasureInChild(
    const RunOptions& options, Benchmark benchmark, Transport transport,
    Api api);

// Returns the child's next result. Blocks without a timeout, because the child
// has a watchdog. `cell` is for error messages.
absl::StatusOr<RoundResult> ReadResult(const Cell& cell, ChildProcess* process);

// Runs a client process, and ends it. `options` contain one benchmark, one
// transport and one API.
[[noreturn]] void RunClientRole(const RunOptions& options);

}  // namespace bench
}  // namespace penstock

#endif  // PENSTOCK_BENCH_RPC_CLIENT_ROLE_H_
