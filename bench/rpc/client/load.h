// One measured burst of RPCs or stream messages, for every API.
//
// A Load has one lane for each RPC that may be outstanding. The clients
// (client.h) only move messages. A lane provides the next message, checks the
// reply and records the times. Therefore the same code measures and checks all
// APIs.

#ifndef PENSTOCK_BENCH_RPC_CLIENT_LOAD_H_
#define PENSTOCK_BENCH_RPC_CLIENT_LOAD_H_

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/rpc/message/payload.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/status.h"
#include "penstock/penstock.h"

namespace penstock {
namespace bench {

class Watchdog;

struct LoadPlan {
  size_t bytes = 0;    // message size
  double seconds = 0;  // start no message later than this
  int64_t rpcs = 0;    // start this many messages instead, if not 0
  int threads = 1;     // callers
  int window = 1;      // lanes per caller
  // True to fill one message before the clock starts, and to send the same
  // message each time.
  bool resend = false;
  // True to request replies of only kMinPayload bytes.
  bool push = false;
  // True to send requests from penstock::Allocator's memory, filled before the
  // clock starts. The clock stops when the handler has the request.
  bool handover = false;

  size_t reply_bytes() const { return push ? kMinPayload : bytes; }
};

struct LoadResult {
  std::vector<double> latencies_us;  // one per RPC or message
  std::vector<double> reads_us;  // for a handover: the handler's reading time
  double seconds = 0;            // from the first start to the last end
};

class Load;

// The measurement of one RPC at a time, or of one stream. Not thread-safe.
class Lane {
 public:
  Lane(Load* load, uint64_t index);

  // Starts the clock, then fills `message` with new data. Returns false if the
  // burst is over or has failed.
  bool Start(grpc::ByteBuffer* message);

  // Ends an RPC: reads and checks the reply, then stops the clock.
  void Finish(const grpc::Status& status, const grpc::ByteBuffer& reply);

  // Stops the clock of a stream's message. Call it once gRPC has accepted the
  // message and is ready for the next one.
  void Written();
  // Ends a stream: checks by the reply that the receiver got every message.
  void Close(const grpc::Status& status, const grpc::ByteBuffer& reply);

 private:
  friend class Load;
  using Clock = std::chrono::steady_clock;

  void Record();
  bool StartHandover(grpc::ByteBuffer* message);
  absl::Status FinishHandover(const grpc::ByteBuffer& reply);

  Load* const load_;
  uint64_t seed_;
  Clock::time_point start_;
  std::vector<double> latencies_us_;
  std::vector<double> reads_us_;
  grpc::ByteBuffer resent_;
  // The buffer of a handover's requests. All requests use this buffer, so that
  // its pages are warm.
  Allocator::Buffer pooled_;
  StreamTally tally_;
};

// One burst: the plan, the lanes and the results. Any thread may call Next(),
// Stop() and Fail().
class Load {
 public:
  // Starts the clock. `watchdog` must outlive the load.
  Load(const LoadPlan& plan, Watchdog* watchdog);

  int threads() const { return plan_.threads; }
  // Prevents new messages. Messages in progress continue.
  void Stop();
  // Returns the lanes of one caller. The lanes live as long as the load.
  std::vector<Lane*> LanesOf(int thread);

  // Returns the result of the burst, or its first error. Call it once, after
  // the last use of a lane.
  absl::StatusOr<LoadResult> Finish();

 private:
  friend class Lane;
  using Clock = std::chrono::steady_clock;

  // Returns true if another message may start.
  bool Next(Clock::time_point now);
  void Fail(const absl::Status& status);

  const LoadPlan plan_;
  Watchdog* const watchdog_;
  const Clock::time_point start_;
  const Clock::time_point end_;
  std::atomic<int64_t> started_{0};
  std::atomic<bool> stopped_{false};
  std::mutex mu_;
  absl::Status error_ ABSL_GUARDED_BY(mu_);  // the first error
  std::vector<std::unique_ptr<Lane>> lanes_;
};

}  // namespace bench
}  // namespace penstock

#endif  // PENSTOCK_BENCH_RPC_CLIENT_LOAD_H_
