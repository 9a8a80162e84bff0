// The benchmark kServers: as in a parameter server, each of many client
// processes sends to each of many server processes at once.

#ifndef PENSTOCK_BENCH_RPC_MANY_SERVERS_H_
#define PENSTOCK_BENCH_RPC_MANY_SERVERS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "bench/rpc/cell.h"
#include "bench/rpc/options.h"
#include "bench/rpc/report.h"

namespace penstock {
namespace bench {

// Starts options.servers servers and options.workers clients, and returns the
// result of each size. Rates are those of all clients together, times the
// median client's, or for the 99th percentile and above the worst client's.
// Errors as of MeasureInChild(). kInproc is UNAVAILABLE.
absl::StatusOr<std::vector<RoundResult>> MeasureServers(
    const RunOptions& options, Transport transport, Api api);

}  // namespace bench
}  // namespace penstock

#endif  // PENSTOCK_BENCH_RPC_MANY_SERVERS_H_
