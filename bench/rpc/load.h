// One measured burst of RPCs or stream messages, whatever API sends them.
//
// A Load has one lane per RPC that may be outstanding. The clients (client.h)
// only move messages: a lane says what to send next, checks what came back and
// keeps the times. So every API is timed and checked by the same code.

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
#include "transport/penstock.h"

namespace penstock {
namespace bench {

class Watchdog;

struct LoadPlan {
  size_t bytes = 0;    // of one message
  double seconds = 0;  // no message starts later than this
  int64_t rpcs = 0;    // this many messages instead, if not 0
  int threads = 1;     // callers
  int window = 1;      // lanes of each caller
  // One message is filled before the clock starts and sent again and again.
  bool resend = false;
  // Requests lie in memory of penstock::Allocator, filled before the clock
  // starts; it stops when the handler has them.
  bool handover = false;
};

struct LoadResult {
  std::vector<double> latencies_us;  // one per RPC or message
  std::vector<double> reads_us;      // of a handover: the handler's reading
  double seconds = 0;                // from the first start to the last end
};

class Load;

// What one caller has outstanding at a time. Used by one thread at a time.
//
// Unary: while (Start(&request)) { ...call...; Finish(status, reply); }
// Stream: while (Start(&message)) { ...write...; Written(); }
//         ...half-close, wait...; Close(status, reply);
class Lane {
 public:
  Lane(Load* load, uint64_t index);

  // Starts the clock and fills `message` anew. False: send nothing more, as
  // the burst is over or something failed.
  bool Start(grpc::ByteBuffer* message);

  // The RPC is over: reads and checks the reply, then stops the clock.
  void Finish(const grpc::Status& status, const grpc::ByteBuffer& reply);

  // gRPC has taken the message and would take another: stops the clock.
  void Written();
  // The stream is over: checks that its reader saw every message.
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
  Allocator::Buffer pooled_;  // of a handover, the same each time: warm
  StreamTally tally_;
};

// The burst. Next() and Fail() may be called from any thread.
class Load {
 public:
  // The clock starts here. `watchdog` outlives the load.
  Load(const LoadPlan& plan, Watchdog* watchdog);

  int threads() const { return plan_.threads; }
  // The lanes of one caller; they live as long as the load.
  std::vector<Lane*> LanesOf(int thread);

  // Call once, when no lane is in use any more. The first error, if any.
  absl::StatusOr<LoadResult> Finish();

 private:
  friend class Lane;
  using Clock = std::chrono::steady_clock;

  // Whether one more message may start.
  bool Next(Clock::time_point now);
  void Fail(const absl::Status& status);

  const LoadPlan plan_;
  Watchdog* const watchdog_;
  const Clock::time_point start_;
  const Clock::time_point end_;
  std::atomic<int64_t> started_{0};
  std::atomic<bool> failed_{false};
  std::mutex mu_;
  absl::Status error_ ABSL_GUARDED_BY(mu_);  // the first
  std::vector<std::unique_ptr<Lane>> lanes_;
};

}  // namespace bench
}  // namespace penstock

#endif  // PENSTOCK_BENCH_RPC_LOAD_H_
