// The service through gRPC's completion-queue server API.

#include <thread>
#include <vector>

#include "bench/rpc/message/payload.h"
#include "bench/rpc/server/server.h"
#include "bench/rpc/setup/service.h"
#include "grpcpp/impl/rpc_service_method.h"
#include "grpcpp/impl/service_type.h"
#include "grpcpp/support/async_stream.h"
#include "grpcpp/support/async_unary_call.h"

namespace penstock {
namespace bench {
namespace {

using grpc::ByteBuffer;

class AsyncService final : public grpc::Service {
 public:
  AsyncService() {
    using grpc::internal::RpcMethod;
    using grpc::internal::RpcServiceMethod;
    AddMethod(
        new RpcServiceMethod(kEchoMethod, RpcMethod::NORMAL_RPC, nullptr));
    AddMethod(new RpcServiceMethod(kStreamMethod, RpcMethod::CLIENT_STREAMING,
                                   nullptr));
    MarkMethodRaw(kEchoIndex);
    MarkMethodRaw(kStreamIndex);
  }

  using grpc::Service::RequestAsyncClientStreaming;
  using grpc::Service::RequestAsyncUnary;
};

// One call, waiting for a client or in progress. The call is the tag of its
// operations, one of which is outstanding at a time. Deletes itself at the end.
class Call {
 public:
  virtual ~Call() = default;
  // Handles the completion of the outstanding operation.
  virtual void Proceed(bool ok) = 0;
};

class EchoCall final : public Call {
 public:
  EchoCall(AsyncService* service, grpc::ServerCompletionQueue* queue)
      : service_(service), queue_(queue), writer_(&context_) {
    service_->RequestAsyncUnary(kEchoIndex, &context_, &request_, &writer_,
                                queue_, queue_, this);
  }

  void Proceed(bool ok) override {
    if (finishing_ || !ok) {
      delete this;
      return;
    }
    new EchoCall(service_, queue_);  // for the next client
    finishing_ = true;
    absl::StatusOr<ByteBuffer> answer = Answer(request_);
    if (answer.ok()) {
      writer_.Finish(*answer, grpc::Status::OK, this);
    } else {
      writer_.FinishWithError(ToGrpc(answer.status()), this);
    }
  }

 private:
  AsyncService* const service_;
  grpc::ServerCompletionQueue* const queue_;
  grpc::ServerContext context_;
  ByteBuffer request_;
  grpc::ServerAsyncResponseWriter<ByteBuffer> writer_;
  bool finishing_ = false;
};

class StreamCall final : public Call {
 public:
  StreamCall(AsyncService* service, grpc::ServerCompletionQueue* queue)
      : service_(service), queue_(queue), reader_(&context_) {
    service_->RequestAsyncClientStreaming(kStreamIndex, &context_, &reader_,
                                          queue_, queue_, this);
  }

  void Proceed(bool ok) override {
    switch (state_) {
      case State::kWaiting:
        if (!ok) break;
        new StreamCall(service_, queue_);  // for the next client
        state_ = State::kReading;
        reader_.Read(&message_, this);
        return;
      case State::kReading:
        ReadDone(ok);
        return;
      case State::kFinishing:
        break;
    }
    delete this;
  }

 private:
  enum class State { kWaiting, kReading, kFinishing };

  void ReadDone(bool ok) {
    if (!ok) {
      state_ = State::kFinishing;
      reader_.Finish(tally_.Encode(), grpc::Status::OK, this);
      return;
    }
    const absl::Status status = tally_.Add(message_);
    if (!status.ok()) {
      state_ = State::kFinishing;
      reader_.FinishWithError(ToGrpc(status), this);
      return;
    }
    reader_.Read(&message_, this);
  }

  AsyncService* const service_;
  grpc::ServerCompletionQueue* const queue_;
  grpc::ServerContext context_;
  ByteBuffer message_;
  StreamTally tally_;
  grpc::ServerAsyncReader<ByteBuffer, ByteBuffer> reader_;
  State state_ = State::kWaiting;
};

class AsyncHost final : public ServiceHost {
 public:
  explicit AsyncHost(int threads) : threads_(threads) {}

  void Register(grpc::ServerBuilder* builder) override {
    builder->RegisterService(&service_);
    queue_ = builder->AddCompletionQueue();
  }

  void Start() override {
    new EchoCall(&service_, queue_.get());
    new StreamCall(&service_, queue_.get());
    for (int i = 0; i < threads_; ++i) {
      workers_.emplace_back([this] { Work(); });
    }
  }

  void Drain() override {
    queue_->Shutdown();
    for (std::thread& worker : workers_) worker.join();
  }

 private:
  void Work() {
    void* tag;
    bool ok;
    while (queue_->Next(&tag, &ok)) static_cast<Call*>(tag)->Proceed(ok);
  }

  const int threads_;
  AsyncService service_;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::vector<std::thread> workers_;
};

}  // namespace

std::unique_ptr<ServiceHost> MakeAsyncHost(int threads) {
  return std::make_unique<AsyncHost>(threads);
}

}  // namespace bench
}  // namespace penstock
