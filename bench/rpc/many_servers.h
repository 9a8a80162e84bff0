// The benchmark kServers: each of many client processes sends to all of many
// server processes concurrently, as in a parameter server.

#ifndef PENSTOCK_BENCH_RPC_MANY_SERVERS_H_
#define PENSTOCK_BENCH_RPC_MANY_SERVERS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "bench/rpc/message/cell.h"
#include "bench/rpc/report/report.h"
#include "bench/rpc/setup/options.h"

namespace penstock {
namespace bench {

// Starts options.servers servers and `clients` clients, and returns the result
// of each size. Rates are the sum over all clients. Times are the median
// client's; the 99th and higher percentiles are the worst client's. Errors are
// those of MeasureInChild(). kInproc is UNAVAILABLE.
absl::StatusOr<std::vector<RoundResult>> MeasureServers(
    const RunOptions& options, Transport transport, Api api, int clients);

}  // namespace bench
}  // namespace penstock

#endif  // PENSTOCK_BENCH_RPC_MANY_SERVERS_H_
