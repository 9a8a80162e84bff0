// gRPC's completion-queue client API.

#include <memory>
#include <thread>
#include <vector>

#include "bench/rpc/client/client.h"
#include "bench/rpc/setup/service.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/impl/rpc_method.h"
#include "grpcpp/support/async_stream.h"
#include "grpcpp/support/async_unary_call.h"

namespace penstock {
namespace bench {
namespace {

using grpc::ByteBuffer;
using grpc::internal::RpcMethod;

// A unary RPC or a stream. Also the tag of its operations in the queue.
class Call {
 public:
  virtual ~Call() = default;
  // Starts the first operation. Returns false if the load has nothing to send.
  virtual bool Begin() = 0;
  // Handles the end of an operation, and starts the next one. Returns false
  // after the last operation.
  virtual bool Proceed(bool ok) = 0;
};

// The consecutive unary RPCs of one lane.
class EchoCalls final : public Call {
 public:
  EchoCalls(const std::shared_ptr<grpc::Channel>& channel, Lane* lane,
            grpc::CompletionQueue* queue)
      : stub_(channel), lane_(lane), queue_(queue) {}

  bool Begin() override {
    if (!lane_->Start(&request_)) return false;
    // Destroy the reader before the context, which keeps the reader's memory
    // alive.
    reader_.reset();
    context_ = std::make_unique<grpc::ClientContext>();
    SetDeadline(context_.get());
    reader_ =
        stub_.PrepareUnaryCall(context_.get(), kEchoMethod, request_, queue_);
    reader_->StartCall();
    reader_->Finish(&reply_, &status_, this);
    return true;
  }

  bool Proceed(bool) override {
    lane_->Finish(status_, reply_);
    return Begin();
  }

 private:
  grpc::GenericStub stub_;
  Lane* const lane_;
  grpc::CompletionQueue* const queue_;
  ByteBuffer request_;
  ByteBuffer reply_;
  grpc::Status status_;
  std::unique_ptr<grpc::ClientContext> context_;
  std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader_;
};

// A stream of one lane, with one outstanding operation at a time.
class StreamCall final : public Call {
 public:
  StreamCall(const std::shared_ptr<grpc::Channel>& channel, Lane* lane,
             grpc::CompletionQueue* queue)
      : channel_(channel), lane_(lane), queue_(queue) {}

  bool Begin() override {
    writer_.reset(grpc::internal::ClientAsyncWriterFactory<ByteBuffer>::Create(
        channel_.get(), queue_,
        RpcMethod(kStreamMethod, RpcMethod::CLIENT_STREAMING, channel_),
        &context_, &reply_, /*start=*/true, this));
    return true;
  }

  bool Proceed(bool ok) override {
    switch (state_) {
      case State::kStarting:
        ok ? Write() : Finish();
        return true;
      case State::kWriting:
        if (ok) lane_->Written();
        ok ? Write() : Finish();
        return true;
      case State::kHalfClosing:
        Finish();
        return true;
      case State::kFinishing:
        lane_->Close(status_, reply_);
        return false;
    }
    return false;
  }

 private:
  enum class State { kStarting, kWriting, kHalfClosing, kFinishing };

  void Write() {
    if (lane_->Start(&message_)) {
      state_ = State::kWriting;
      writer_->Write(message_, this);
    } else {
      state_ = State::kHalfClosing;
      writer_->WritesDone(this);
    }
  }

  void Finish() {
    state_ = State::kFinishing;
    writer_->Finish(&status_, this);
  }

  const std::shared_ptr<grpc::Channel> channel_;
  Lane* const lane_;
  grpc::CompletionQueue* const queue_;
  grpc::ClientContext context_;
  ByteBuffer message_;
  ByteBuffer reply_;
  grpc::Status status_;
  State state_ = State::kStarting;
  std::unique_ptr<grpc::ClientAsyncWriter<ByteBuffer>> writer_;
};

// Runs one caller: a thread with a completion queue and the caller's lanes.
template <typename CallType>
void RunCaller(const std::shared_ptr<grpc::Channel>& channel,
               const std::vector<Lane*>& lanes) {
  grpc::CompletionQueue queue;
  std::vector<std::unique_ptr<CallType>> calls;
  size_t active = 0;
  for (Lane* lane : lanes) {
    calls.push_back(std::make_unique<CallType>(channel, lane, &queue));
    if (calls.back()->Begin()) ++active;
  }
  void* tag;
  bool ok;
  while (active > 0 && queue.Next(&tag, &ok)) {
    if (!static_cast<Call*>(tag)->Proceed(ok)) --active;
  }
  queue.Shutdown();
  while (queue.Next(&tag, &ok)) {
  }
}

template <typename CallType>
void RunCallers(const std::shared_ptr<grpc::Channel>& channel, Load* load) {
  std::vector<std::thread> threads;
  for (int i = 0; i < load->threads(); ++i) {
    threads.emplace_back([&channel, load, i] {
      RunCaller<CallType>(channel, load->LanesOf(i));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

void RunEchoAsync(const std::shared_ptr<grpc::Channel>& channel, Load* load) {
  RunCallers<EchoCalls>(channel, load);
}

void RunStreamAsync(const std::shared_ptr<grpc::Channel>& channel, Load* load) {
  RunCallers<StreamCall>(channel, load);
}

}  // namespace bench
}  // namespace penstock
