// Replays the calls of a recording.

#ifndef PENSTOCK_BENCH_RPC_CLIENT_REPLAY_H_
#define PENSTOCK_BENCH_RPC_CLIENT_REPLAY_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/rpc/client/watchdog.h"
#include "bench/rpc/recording/recording.h"
#include "grpcpp/channel.h"

namespace penstock {
namespace bench {

struct ReplayResult {
  // The latency of each unary call, or of every call if none is unary.
  std::vector<double> latencies_us;
  double seconds = 0;  // from the first call's begin to the last one's end
  size_t bytes = 0;    // of messages in both directions, as gRPC delivered them
};

// Replays all calls, each client's over its channel, and returns when the last
// call has ended. Checks every message and status.
//
// With kMaxSpeed, a call begins once those earlier calls of its client have
// ended that had ended before it began in the recording. A client's calls thus
// keep their order and overlap, and clients do not wait for one another. With
// another speed, each call begins at its recorded time divided by `speed`. The
// latency of a call counts from that time, even if the call has to wait for a
// thread. The same applies to each message that the client sends in a stream.
// Servers answer immediately.
absl::StatusOr<ReplayResult> Replay(
    const Recording& recording,
    const std::vector<std::shared_ptr<grpc::Channel>>& channels, double speed,
    Watchdog* watchdog);

}  // namespace bench
}  // namespace penstock

#endif  // PENSTOCK_BENCH_RPC_CLIENT_REPLAY_H_
