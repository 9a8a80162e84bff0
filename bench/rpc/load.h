// One measured burst of RPCs or stream messages, whatever API sends them.
//
// A Load has one lane for each RPC that may be outstanding. The clients
// (client.h) only move messages. A lane says what to send next, checks what
// comes back and keeps the times, so the same code times and checks every API.

#ifndef PENSTOCK_BENCH_RPC_LOAD_H_
#define PENSTOCK_BENCH_RPC_LOAD_H_

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
#include "bench/rpc/payload.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/status.h"
#include "penstock/penstock.h"

namespace penstock {
namespace bench {

class Watchdog;

struct LoadPlan {
  size_t bytes = 0;    // of one message
  double seconds = 0;  // no message starts later than this
  int64_t rpcs = 0;    // this many messages instead, if not 0
  int threads = 1;     // callers
  int window = 1;      // lanes of each caller
  // Fills one message before the clock starts, and sends it again and again.
  bool resend = false;
  // Asks for replies of kMinPayload bytes.
  bool push = false;
  // Sends requests from memory of penstock::Allocator, filled before the clock
  // starts. The clock stops when the handler has the request.
  bool handover = false;

  size_t reply_bytes() const { return push ? kMinPayload : bytes; }
};

struct LoadResult {
  std::vector<double> latencies_us;  // one per RPC or message
  std::vector<double> reads_us;      // of a handover: the handler's reading
  double seconds = 0;                // from the first start to the last end
};

class Load;

// One outstanding RPC or stream of a caller. Used by one thread at a time.
class Lane {
 public:
  Lane(Load* load, uint64_t index);

  // Starts the clock, then fills `message` anew. Returns false if nothing more
  // is to be sent, since the burst is over or something failed.
  bool Start(grpc::ByteBuffer* message);

  // Ends the RPC: reads and checks the reply, then stops the clock.
  void Finish(const grpc::Status& status, const grpc::ByteBuffer& reply);

  // Stops the clock: gRPC has taken the message, and would take another one.
  void Written();
  // Ends the stream: checks that its reader saw every message.
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
  Allocator::Buffer pooled_;  // of a handover: always the same one, so warm
  StreamTally tally_;
};

// The burst. Any thread may call Next(), Stop() and Fail().
class Load {
 public:
  // Starts the clock. `watchdog` outlives the load.
  Load(const LoadPlan& plan, Watchdog* watchdog);

  int threads() const { return plan_.threads; }
  // Starts nothing more. What has started comes to its end.
  void Stop();
  // Returns the lanes of one caller. They live as long as the load.
  std::vector<Lane*> LanesOf(int thread);

  // Returns the result, or the first error. Call it once, when no lane is in
  // use any more.
  absl::StatusOr<LoadResult> Finish();

 private:
  friend class Lane;
  using Clock = std::chrono::steady_clock;

  // Returns whether one more message may start.
  bool Next(Clock::time_point now);
  void Fail(const absl::Status& status);

  const LoadPlan plan_;
  Watchdog* const watchdog_;
  const Clock::time_point start_;
  const Clock::time_point end_;
  std::atomic<int64_t> started_{0};
  std::atomic<bool> stopped_{false};
  std::mutex mu_;
  absl::Status error_ ABSL_GUARDED_BY(mu_);  // the first
  std::vector<std::unique_ptr<Lane>> lanes_;
};

}  // namespace bench
}  // namespace penstock

#endif  // PENSTOCK_BENCH_RPC_LOAD_H_
