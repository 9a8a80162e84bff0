// Measures one cell in one round: warms up, measures, checks what carried it.

#ifndef PENSTOCK_BENCH_RPC_MEASURE_H_
#define PENSTOCK_BENCH_RPC_MEASURE_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/rpc/cell.h"
#include "bench/rpc/connection.h"
#include "bench/rpc/options.h"
#include "bench/rpc/report.h"

namespace penstock {
namespace bench {

class Watchdog;

// A fifth of a burst goes unmeasured before it: enough for gRPC to have its
// threads and its windows, and for a fresh heap to have grown.
constexpr int kWarmUpPart = 5;

// Makes RPCs of many sizes on each channel, one at a time, so that what a
// session measures for itself has settled: options.warm_up of them.
absl::Status WarmUpChannels(const RunOptions& options,
                            const Connection& connection, Watchdog* watchdog);

// Uses all channels of `connection` at once, with `options.threads` callers
// each. The channels share --rpcs. Blocks. Returns UNAVAILABLE if a channel was
// not carried by the cell's transport until the end. Other errors are those of
// RPCs.
absl::StatusOr<RoundResult> MeasureCell(const RunOptions& options,
                                        const Cell& cell,
                                        const Connection& connection,
                                        Watchdog* watchdog);

}  // namespace bench
}  // namespace penstock

#endif  // PENSTOCK_BENCH_RPC_MEASURE_H_
