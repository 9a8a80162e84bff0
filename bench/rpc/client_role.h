// The client in its own process: it measures the sizes of one (benchmark,
// transport, API) over one fresh connection.
//
// A process per connection, because gRPC and Penstock keep state that is
// process-wide: threads, pollers, heap. A client that had just sent megabytes
// over one transport would poll differently for the next one's 8 bytes.

#ifndef PENSTOCK_BENCH_RPC_CLIENT_ROLE_H_
#define PENSTOCK_BENCH_RPC_CLIENT_ROLE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "bench/rpc/cell.h"
#include "bench/rpc/options.h"
#include "bench/rpc/report.h"

namespace penstock {
namespace bench {

// Starts a client process and waits for its results: one for each size, in
// their order. UNAVAILABLE with the reason if the transport cannot be had; any
// other error means that it broke, and names the cell.
absl::StatusOr<std::vector<RoundResult>> MeasureInChild(
    const RunOptions& options, Benchmark benchmark, Transport transport,
    Api api);

// That process's main(): `options` hold one benchmark, transport and API.
[[noreturn]] void RunClientRole(const RunOptions& options);

}  // namespace bench
}  // namespace penstock

#endif  // PENSTOCK_BENCH_RPC_CLIENT_ROLE_H_
