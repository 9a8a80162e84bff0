#include "ps/heartbeat.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "grpcpp/client_context.h"
#include "ps/ps.grpc.pb.h"

namespace penstock::ps {

struct HeartbeatSender::Stream {
  std::unique_ptr<v1::ParameterServer::Stub> stub;
  v1::AttendReply reply;
  bool given_up = false;  // the rank belongs to another incarnation

  // Guards `context` alone: Stop() cancels from another thread.
  absl::Mutex mu;
  std::unique_ptr<grpc::ClientContext> context ABSL_GUARDED_BY(mu);
  std::unique_ptr<grpc::ClientWriter<v1::Heartbeat>> writer;

  void Open() {
    auto fresh = std::make_unique<grpc::ClientContext>();
    writer = stub->Attend(fresh.get(), &reply);
    absl::MutexLock lock(&mu);
    context = std::move(fresh);
  }

  void Close() {
    if (writer == nullptr) return;
    grpc::Status status = writer->Finish();
    given_up = status.error_code() == grpc::StatusCode::ABORTED;
    writer = nullptr;
    absl::MutexLock lock(&mu);
    context = nullptr;
  }

  void Cancel() {
    absl::MutexLock lock(&mu);
    if (context != nullptr) context->TryCancel();
  }
};

HeartbeatSender::HeartbeatSender(
    std::vector<std::shared_ptr<grpc::Channel>> servers,
    const v1::WorkerId& worker, absl::Duration lease)
    : worker_(worker), lease_(lease) {
  for (const std::shared_ptr<grpc::Channel>& server : servers) {
    auto stream = std::make_unique<Stream>();
    stream->stub = v1::ParameterServer::NewStub(server);
    streams_.push_back(std::move(stream));
  }
  thread_ = std::thread([this] { ThreadLoop(); });
}

HeartbeatSender::~HeartbeatSender() { Stop(/*say_good_bye=*/false); }

void HeartbeatSender::SayGoodBye() { Stop(/*say_good_bye=*/true); }

void HeartbeatSender::Stop(bool say_good_bye) {
  if (!thread_.joinable()) return;
  {
    absl::MutexLock lock(&mu_);
    stop_ = true;
    say_good_bye_ = say_good_bye;
    wake_.Signal();
    absl::Time limit = absl::Now();
    if (say_good_bye) limit += std::min(lease_, kGoodByeLimit);
    while (!done_ && !wake_.WaitWithDeadline(&mu_, limit)) {
    }
  }
  // A server that does not answer must not hold up our end.
  for (std::unique_ptr<Stream>& stream : streams_) stream->Cancel();
  thread_.join();
}

void HeartbeatSender::Beat(Stream* stream, bool leaving) {
  if (stream->given_up) return;
  if (stream->writer == nullptr) stream->Open();
  v1::Heartbeat beat;
  *beat.mutable_worker() = worker_;
  beat.set_leaving(leaving);
  if (!stream->writer->Write(beat)) return stream->Close();
  if (!leaving) return;
  stream->writer->WritesDone();
  stream->Close();
}

void HeartbeatSender::ThreadLoop() {
  bool leaving = false;
  while (true) {
    for (std::unique_ptr<Stream>& stream : streams_) {
      Beat(stream.get(), /*leaving=*/false);
    }
    absl::MutexLock lock(&mu_);
    absl::Time next = absl::Now() + lease_ / 3;
    while (!stop_ && !wake_.WaitWithDeadline(&mu_, next)) {
    }
    leaving = say_good_bye_;
    if (stop_) break;
  }
  for (std::unique_ptr<Stream>& stream : streams_) {
    if (leaving) {
      Beat(stream.get(), /*leaving=*/true);
    } else {
      stream->Cancel();
      stream->Close();
    }
  }
  absl::MutexLock lock(&mu_);
  done_ = true;
  wake_.Signal();
}

}  // namespace penstock::ps
