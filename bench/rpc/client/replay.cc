#include "bench/rpc/client/replay.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "bench/rpc/client/client.h"
#include "bench/rpc/recording/replay_message.h"
#include "bench/rpc/setup/service.h"
#include "grpcpp/impl/client_unary_call.h"
#include "grpcpp/impl/rpc_method.h"
#include "grpcpp/support/sync_stream.h"

namespace penstock {
namespace bench {
namespace {

using Clock = std::chrono::steady_clock;
using grpc::ByteBuffer;
using grpc::internal::RpcMethod;

// The number of lanes beyond the recording's number of open calls. In a timed
// replay, more calls may overlap.
constexpr size_t kSpareLanes = 8;

// The state of a replay that all clients share.
struct Run {
  const Recording& recording;
  const double speed;
  Watchdog* const watchdog;
  const bool has_unary;
  Clock::time_point begun = Clock::now();
  std::atomic<bool> failed{false};

  // Returns the time at which to replay an event of the recording.
  Clock::time_point DueAt(int64_t recorded_us) const {
    if (speed == kMaxSpeed) return begun;
    return begun +
           std::chrono::microseconds(static_cast<int64_t>(recorded_us / speed));
  }
  void SleepUntil(Clock::time_point due) const {
    while (!failed) {
      const Clock::time_point now = Clock::now();
      if (now >= due) return;
      std::this_thread::sleep_until(
          std::min(due, now + std::chrono::seconds(1)));
      watchdog->Progress();
    }
  }
};

// Makes one call of the recording.
class Caller {
 public:
  Caller(Run* run, const std::shared_ptr<grpc::Channel>& channel)
      : run_(run),
        channel_(channel),
        unary_(kReplayMethod, RpcMethod::NORMAL_RPC, channel),
        stream_(kReplayStreamMethod, RpcMethod::BIDI_STREAMING, channel) {}

  absl::Status Make(size_t number) {
    const RecordedCall& call = run_->recording.calls[number];
    grpc::ClientContext context;
    context.AddMetadata(kReplayedCall, absl::StrCat(number));
    const absl::Status status = call.is_unary()
                                    ? Unary(number, call, &context)
                                    : Stream(number, call, &context);
    if (status.ok()) return status;
    return absl::Status(status.code(),
                        absl::StrCat("call ", number, " (", call.method,
                                     "): ", status.message()));
  }

  size_t bytes() const { return bytes_; }

 private:
  absl::Status Unary(size_t number, const RecordedCall& call,
                     grpc::ClientContext* context) {
    const ByteBuffer request =
        MakeReplayMessage(call.messages[0].bytes, ReplaySeed(number, 0));
    ByteBuffer reply;
    const absl::Status status = FromGrpc(grpc::internal::BlockingUnaryCall(
        channel_.get(), unary_, context, request, &reply));
    if (!status.ok()) return status;
    bytes_ += request.Length() + reply.Length();
    return CheckReplayMessage(reply, call.messages[1].bytes,
                              ReplaySeed(number, 1));
  }

  absl::Status Stream(size_t number, const RecordedCall& call,
                      grpc::ClientContext* context) {
    using Factory =
        grpc::internal::ClientReaderWriterFactory<ByteBuffer, ByteBuffer>;
    const std::unique_ptr<grpc::ClientReaderWriter<ByteBuffer, ByteBuffer>>
        stream(Factory::Create(channel_.get(), stream_, context));
    absl::Status wrong;
    for (size_t i = 0; i < call.messages.size() && wrong.ok(); ++i) {
      const RecordedMessage& recorded = call.messages[i];
      const uint64_t seed = ReplaySeed(number, i);
      ByteBuffer message;
      if (recorded.sent) {
        if (!stream->Read(&message)) break;
        wrong = CheckReplayMessage(message, recorded.bytes, seed);
      } else {
        run_->SleepUntil(run_->DueAt(call.begun_us + recorded.after_us));
        message = MakeReplayMessage(recorded.bytes, seed);
        if (!stream->Write(message)) break;
      }
      bytes_ += message.Length();
      run_->watchdog->Progress();
    }
    if (!wrong.ok()) context->TryCancel();
    stream->WritesDone();
    const grpc::Status status = stream->Finish();
    if (!wrong.ok()) return wrong;
    if (status.error_code() == call.status) return absl::OkStatus();
    if (!status.ok()) return FromGrpc(status);
    return absl::DataLossError(
        absl::StrCat("its status is OK, and was ", call.status));
  }

  Run* const run_;
  const std::shared_ptr<grpc::Channel> channel_;
  const RpcMethod unary_;
  const RpcMethod stream_;
  size_t bytes_ = 0;
};

// Makes the calls of one client. The client's lanes take calls in order.
class Client {
 public:
  Client(Run* run, const std::shared_ptr<grpc::Channel>& channel,
         std::vector<size_t> calls)
      : run_(run), channel_(channel), calls_(std::move(calls)) {
    ended_.resize(calls_.size());
    Rank();
  }

  void Start() {
    size_t lanes = MostOpen(run_->recording, calls_);
    if (run_->speed != kMaxSpeed) lanes += kSpareLanes;
    lanes = std::min(lanes, calls_.size());
    for (size_t i = 0; i < lanes; ++i) {
      threads_.emplace_back([this] { RunLane(); });
    }
  }

  // Waits for the lanes, and adds their results.
  absl::Status Finish(ReplayResult* result) {
    for (std::thread& thread : threads_) thread.join();
    const std::lock_guard<std::mutex> lock(mu_);
    result->latencies_us.insert(result->latencies_us.end(),
                                latencies_us_.begin(), latencies_us_.end());
    result->bytes += bytes_;
    return error_;
  }

 private:
  const RecordedCall& CallAt(size_t position) const {
    return run_->recording.calls[calls_[position]];
  }

  // Ranks the calls by their ends. Sets awaits_ to the number of calls that
  // ended before each call began. These calls have the lowest ranks.
  void Rank() {
    std::vector<size_t> by_end(calls_.size());
    for (size_t i = 0; i < by_end.size(); ++i) by_end[i] = i;
    std::stable_sort(by_end.begin(), by_end.end(), [this](size_t a, size_t b) {
      return CallAt(a).ended_us() < CallAt(b).ended_us();
    });
    rank_.resize(calls_.size());
    for (size_t i = 0; i < by_end.size(); ++i) rank_[by_end[i]] = i;
    size_t ended = 0;
    for (size_t i = 0; i < calls_.size(); ++i) {
      // The condition `by_end[ended] < i` prevents a call of zero duration from
      // waiting for itself.
      while (ended < by_end.size() && by_end[ended] < i &&
             CallAt(by_end[ended]).ended_us() <= CallAt(i).begun_us) {
        ++ended;
      }
      awaits_.push_back(ended);
    }
  }

  // Blocks until the next call may begin, and returns its position. After the
  // last call, returns the number of calls.
  size_t Take() {
    std::unique_lock<std::mutex> lock(mu_);
    const size_t position = next_;
    if (position == calls_.size()) return position;
    ++next_;
    if (run_->speed != kMaxSpeed) return position;
    changed_.wait(lock, [&] {
      return run_->failed || ended_prefix_ >= awaits_[position];
    });
    return position;
  }

  void RunLane() {
    Caller caller(run_, channel_);
    std::vector<double> latencies_us;
    absl::Status status;
    for (size_t i = Take(); i < calls_.size() && status.ok(); i = Take()) {
      if (run_->failed) break;
      Clock::time_point begin = run_->DueAt(CallAt(i).begun_us);
      run_->SleepUntil(begin);
      if (run_->speed == kMaxSpeed) begin = Clock::now();
      status = caller.Make(calls_[i]);
      const std::chrono::duration<double, std::micro> took =
          Clock::now() - begin;
      if (CallAt(i).is_unary() || !run_->has_unary) {
        latencies_us.push_back(took.count());
      }
      End(i, status);
    }
    const std::lock_guard<std::mutex> lock(mu_);
    // Wake waiting lanes, because another client may have failed.
    changed_.notify_all();
    bytes_ += caller.bytes();
    latencies_us_.insert(latencies_us_.end(), latencies_us.begin(),
                         latencies_us.end());
  }

  void End(size_t position, const absl::Status& status) {
    run_->watchdog->Progress();
    const std::lock_guard<std::mutex> lock(mu_);
    if (!status.ok()) run_->failed = true;
    error_.Update(status);
    ended_[rank_[position]] = true;
    while (ended_prefix_ < ended_.size() && ended_[ended_prefix_]) {
      ++ended_prefix_;
    }
    changed_.notify_all();
  }

  Run* const run_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::vector<size_t> calls_;  // in the order in which they begin
  std::vector<size_t> rank_;         // of each call, ordered by end
  // For each call, the number of calls that must end before the call begins:
  // those with the lowest ranks.
  std::vector<size_t> awaits_;
  std::vector<std::thread> threads_;

  std::mutex mu_;
  std::condition_variable changed_;
  size_t next_ ABSL_GUARDED_BY(mu_) = 0;
  std::vector<bool> ended_ ABSL_GUARDED_BY(mu_);  // by rank
  size_t ended_prefix_ ABSL_GUARDED_BY(mu_) = 0;
  absl::Status error_ ABSL_GUARDED_BY(mu_);
  std::vector<double> latencies_us_ ABSL_GUARDED_BY(mu_);
  size_t bytes_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace

absl::StatusOr<ReplayResult> Replay(
    const Recording& recording,
    const std::vector<std::shared_ptr<grpc::Channel>>& channels, double speed,
    Watchdog* watchdog) {
  const bool has_unary =
      std::any_of(recording.calls.begin(), recording.calls.end(),
                  [](const RecordedCall& call) { return call.is_unary(); });
  Run run{recording, speed, watchdog, has_unary};
  std::vector<std::unique_ptr<Client>> clients;
  for (size_t i = 0; i < recording.clients; ++i) {
    clients.push_back(
        std::make_unique<Client>(&run, channels[i], recording.CallsOf(i)));
  }
  run.begun = Clock::now();
  for (const auto& client : clients) client->Start();
  ReplayResult result;
  absl::Status status;
  for (const auto& client : clients) status.Update(client->Finish(&result));
  result.seconds =
      std::chrono::duration<double>(Clock::now() - run.begun).count();
  if (!status.ok()) return status;
  if (result.bytes != recording.bytes) {
    return absl::DataLossError(absl::StrCat(result.bytes, " bytes moved, and ",
                                            recording.bytes, " recorded"));
  }
  return result;
}

}  // namespace bench
}  // namespace penstock
