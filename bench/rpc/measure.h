// Measures one cell in one round: warms up, measures, and checks the path.

#ifndef PENSTOCK_BENCH_RPC_MEASURE_H_
#define PENSTOCK_BENCH_RPC_MEASURE_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/rpc/message/cell.h"
#include "bench/rpc/report/report.h"
#include "bench/rpc/server_channels.h"
#include "bench/rpc/setup/options.h"

namespace penstock {
namespace bench {

class Watchdog;

// Divides the length of a burst to get the length of its warm-up. A fifth is
// enough for gRPC's threads and windows, and for the growth of a new heap.
constexpr int kWarmUpPart = 5;

// Makes options.warm_up RPCs of many sizes on each channel, one at a time.
// Afterwards a session's own measurements have settled.
absl::Status WarmUpChannels(const RunOptions& options,
                            const ServerChannels& server, Watchdog* watchdog);

// Measures a cell on all channels of `server` concurrently, with
// `options.threads` callers per channel. The channels share --rpcs. Blocks.
// Returns UNAVAILABLE if a channel did not use the cell's transport until the
// end. Other errors are those of RPCs.
absl::StatusOr<RoundResult> MeasureCell(const RunOptions& options,
                                        const Cell& cell,
                                        const ServerChannels& server,
                                        Watchdog* watchdog);

}  // namespace bench
}  // namespace penstock

#endif  // PENSTOCK_BENCH_RPC_MEASURE_H_
