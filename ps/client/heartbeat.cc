#include "ps/client/heartbeat.h"

#include <algorithm>
#include <utility>

#include "grpcpp/client_context.h"
#include "ps/wire/ps.grpc.pb.h"
#include "transport/base/steady_time.h"

namespace penstock::ps {

// The heartbeats to one server. Has either an open Attend stream, or a pause
// before the next stream. At most one operation is in progress. The tag of its
// event is the stream's address.
class HeartbeatSender::Stream {
 public:
  // Sends to `server`. If `route` is not null, sends by `route` instead.
  Stream(const std::shared_ptr<grpc::Channel>& server, Route* route,
         uint64_t run, const v1::WorkerId& worker, absl::Duration patience,
         grpc::CompletionQueue* queue)
      : stub_(v1::ParameterServer::NewStub(server)),
        route_(route),
        patience_(patience),
        queue_(queue) {
    beat_.set_run(run);
    *beat_.mutable_worker() = worker;
  }

  // Sends a heartbeat, unless the last operation is still in progress. Cancels
  // the stream if an operation takes longer than the patience.
  void Beat() {
    switch (state_) {
      case State::kClosed:
        return Open();
      case State::kIdle:
        return Write();
      case State::kOpening:
      case State::kWriting:
      case State::kFinishing:
        if (base::SteadyNow() - since_ >= patience_) Cancel();
        return;
      case State::kEnded:
        return;
    }
  }

  // Sends the last heartbeat once the operation in progress has ended. The
  // stream ends after that heartbeat, or if the heartbeat fails.
  void Leave() {
    beat_.set_leaving(true);
    if (state_ == State::kClosed || state_ == State::kIdle) Beat();
  }

  // Cancels the stream. The operation in progress then ends immediately, and
  // its event ends the stream.
  void BreakOff() {
    is_broken_off_ = true;
    if (state_ == State::kClosed) state_ = State::kEnded;
    if (state_ == State::kIdle) Finish();
    Cancel();
  }

  void OnEvent(bool ok) {
    if (state_ == State::kFinishing) return OnFinished();
    if (!ok || is_broken_off_ || has_left_) return Finish();
    const bool is_open = state_ == State::kWriting;
    state_ = State::kIdle;
    if (!is_open || beat_.leaving()) Write();
  }

  bool ended() const { return state_ == State::kEnded; }
  bool under_way() const {
    return state_ == State::kOpening || state_ == State::kWriting ||
           state_ == State::kFinishing;
  }

 private:
  enum class State {
    kClosed,  // the next heartbeat opens the stream
    kOpening,
    kIdle,
    kWriting,
    kFinishing,  // waits for the server's status
    kEnded,      // permanently
  };

  void Enter(State state) {
    state_ = state;
    since_ = base::SteadyNow();
  }

  void Open() {
    context_ = std::make_unique<grpc::ClientContext>();
    if (route_ != nullptr) {
      stub_ = v1::ParameterServer::NewStub(route_->Begin(context_.get()));
    }
    writer_ = stub_->PrepareAsyncAttend(context_.get(), &reply_, queue_);
    Enter(State::kOpening);
    writer_->StartCall(this);
  }

  void Write() {
    Enter(State::kWriting);
    has_left_ = beat_.leaving();
    grpc::WriteOptions options;
    if (beat_.leaving()) options.set_last_message();
    writer_->Write(beat_, options, this);
  }

  void Finish() {
    Enter(State::kFinishing);
    writer_->Finish(&status_, this);
  }

  void OnFinished() {
    writer_ = nullptr;
    if (route_ != nullptr) route_->End(context_.get());
    context_ = nullptr;
    const grpc::StatusCode code = status_.error_code();
    const bool is_last = code == grpc::StatusCode::ABORTED ||
                         code == grpc::StatusCode::DATA_LOSS ||
                         beat_.leaving() || is_broken_off_;
    state_ = is_last ? State::kEnded : State::kClosed;
  }

  void Cancel() {
    if (context_ != nullptr) context_->TryCancel();
  }

  // The stub of the last stream.
  std::unique_ptr<v1::ParameterServer::Stub> stub_;
  Route* const route_;
  const absl::Duration patience_;
  grpc::CompletionQueue* const queue_;
  State state_ = State::kClosed;
  absl::Time since_;  // SteadyNow() at the last Enter()
  bool is_broken_off_ = false;
  bool has_left_ = false;
  v1::Heartbeat beat_;
  v1::AttendReply reply_;
  grpc::Status status_;
  std::unique_ptr<grpc::ClientContext> context_;
  std::unique_ptr<grpc::ClientAsyncWriter<v1::Heartbeat>> writer_;
};

HeartbeatSender::HeartbeatSender(
    const std::vector<std::shared_ptr<grpc::Channel>>& servers, uint64_t run,
    const v1::WorkerId& worker, absl::Duration lease,
    const std::vector<Route*>& routes)
    : lease_(lease) {
  streams_.reserve(servers.size());
  for (size_t i = 0; i < servers.size(); ++i) {
    streams_.push_back(std::make_unique<Stream>(
        servers[i], routes.empty() ? nullptr : routes[i], run, worker, lease,
        &queue_));
  }
  sender_ = std::thread([this] { SendLoop(); });
  receiver_ = std::thread([this] { EventLoop(); });
}

HeartbeatSender::~HeartbeatSender() { Stop(/*leaves=*/false); }

void HeartbeatSender::Leave() { Stop(/*leaves=*/true); }

void HeartbeatSender::Stop(bool leaves) {
  if (!sender_.joinable()) return;
  {
    absl::MutexLock lock(&mu_);
    stop_ = true;
    leaves_ = leaves;
    changed_.Signal();
  }
  sender_.join();
  {
    absl::MutexLock lock(&mu_);
    has_sent_all_ = true;
    started_.Signal();
  }
  queue_.Shutdown();
  receiver_.join();
}

void HeartbeatSender::EventLoop() {
  while (true) {
    {
      absl::MutexLock lock(&mu_);
      while (!AnyUnderWayLocked() && !has_sent_all_) started_.Wait(&mu_);
    }
    void* tag = nullptr;
    bool ok = false;
    if (!queue_.Next(&tag, &ok)) return;
    absl::MutexLock lock(&mu_);
    static_cast<Stream*>(tag)->OnEvent(ok);
    if (stop_) changed_.Signal();
  }
}

bool HeartbeatSender::AnyUnderWayLocked() const {
  return std::any_of(streams_.begin(), streams_.end(),
                     [](const std::unique_ptr<Stream>& stream) {
                       return stream->under_way();
                     });
}

bool HeartbeatSender::AllEndedLocked() const {
  return std::all_of(
      streams_.begin(), streams_.end(),
      [](const std::unique_ptr<Stream>& stream) { return stream->ended(); });
}

void HeartbeatSender::AttendLocked() {
  while (!stop_) {
    const absl::Time next = base::SteadyNow() + lease_ / 3;
    for (std::unique_ptr<Stream>& stream : streams_) stream->Beat();
    started_.Signal();
    while (!stop_ && base::SteadyNow() < next) changed_.WaitUntil(&mu_, next);
  }
}

void HeartbeatSender::LeaveLocked() {
  const absl::Time limit = base::SteadyNow() + std::min(lease_, kLeaveLimit);
  for (std::unique_ptr<Stream>& stream : streams_) stream->Leave();
  started_.Signal();
  while (!AllEndedLocked() && base::SteadyNow() < limit) {
    changed_.WaitUntil(&mu_, limit);
  }
}

void HeartbeatSender::BreakOffLocked() {
  for (std::unique_ptr<Stream>& stream : streams_) stream->BreakOff();
  started_.Signal();
  while (!AllEndedLocked()) {
    changed_.WaitUntil(&mu_, absl::InfiniteFuture());
  }
}

void HeartbeatSender::SendLoop() {
  absl::MutexLock lock(&mu_);
  AttendLocked();
  if (leaves_) LeaveLocked();
  BreakOffLocked();
}

}  // namespace penstock::ps
