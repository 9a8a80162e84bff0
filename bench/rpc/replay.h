// Repeats the calls of a recording.

#ifndef PENSTOCK_BENCH_RPC_REPLAY_H_
#define PENSTOCK_BENCH_RPC_REPLAY_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/rpc/recording.h"
#include "bench/rpc/watchdog.h"
#include "grpcpp/channel.h"

namespace penstock {
namespace bench {

struct ReplayResult {
  // One for each unary call, or, if there is none, for each call.
  std::vector<double> latencies_us;
  double seconds = 0;  // from the first call's begin to the last one's end
  size_t bytes = 0;    // of messages, as gRPC handed them over, both ways
};

// Replays all calls, each client's over its channel, and returns when the last
// one has ended. Checks every message and status.
//
// With kMaxSpeed, a call begins when each call of its client has ended that had
// ended before this one began. So a client's calls keep their order and overlap
// as they did, and clients do not wait for one another. With another speed,
// each call begins at its recorded time divided by `speed`, and is timed from
// then on, even if it has to wait for a thread; so is each message of a stream
// that the client sends. Servers answer at once.
absl::StatusOr<ReplayResult> Replay(
    const Recording& recording,
    const std::vector<std::shared_ptr<grpc::Channel>>& channels, double speed,
    Watchdog* watchdog);

}  // namespace bench
}  // namespace penstock

#endif  // PENSTOCK_BENCH_RPC_REPLAY_H_
