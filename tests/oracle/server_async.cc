#include <utility>

#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/impl/rpc_service_method.h"
#include "grpcpp/impl/service_type.h"
#include "grpcpp/support/async_stream.h"
#include "grpcpp/support/async_unary_call.h"
#include "tests/oracle/server_call.h"
#include "tests/oracle/tag.h"

namespace penstock::oracle {
namespace {

using grpc::ByteBuffer;
using grpc::internal::RpcMethod;

// The common part of all kinds of calls. `Context` is one of gRPC's server
// contexts.
template <typename Context>
class AsyncCall : public ServerCall {
 public:
  AsyncCall() { context_.AsyncNotifyWhenDone(&done_); }

  grpc::ServerContextBase* context() override { return &context_; }
  bool AwaitCancelled() override {
    AwaitDone();
    return context_.IsCancelled();
  }
  // Waits, after the handler, until all tags have come back.
  void AwaitEnd() {
    if (finishing_) finish_.Await();
    AwaitDone();
  }

 protected:
  void* FinishTag() {
    finishing_ = true;
    return &finish_;
  }
  Context context_;

 private:
  void AwaitDone() {
    if (!std::exchange(is_done_, true)) done_.Await();
  }

  Tag done_, finish_;
  bool is_done_ = false;
  bool finishing_ = false;
};

class AsyncUnary final : public AsyncCall<grpc::ServerContext> {
 public:
  AsyncUnary() : writer_(&context_) {}
  void SendInitialMetadata() override {
    writer_.SendInitialMetadata(&tag_);
    tag_.Await();
  }
  bool Read(ByteBuffer* message) override {
    if (std::exchange(read_, true)) return false;
    message->Swap(&request_);
    return true;
  }
  bool Write(const ByteBuffer& message, grpc::WriteOptions) override {
    response_ = message;
    return true;
  }
  void Finish(const grpc::Status& status) override {
    if (status.ok()) {
      writer_.Finish(response_, status, FinishTag());
    } else {
      writer_.FinishWithError(status, FinishTag());
    }
  }

 private:
  friend class AsyncService;
  ByteBuffer request_, response_;
  bool read_ = false;
  grpc::ServerAsyncResponseWriter<ByteBuffer> writer_;
  Tag tag_;
};

class AsyncUpload final : public AsyncCall<grpc::ServerContext> {
 public:
  AsyncUpload() : reader_(&context_) {}
  void SendInitialMetadata() override {
    reader_.SendInitialMetadata(&tag_);
    tag_.Await();
  }
  bool Read(ByteBuffer* message) override {
    reader_.Read(message, &tag_);
    return tag_.Await();
  }
  bool Write(const ByteBuffer& message, grpc::WriteOptions) override {
    response_ = message;
    return true;
  }
  void Finish(const grpc::Status& status) override {
    if (status.ok()) {
      reader_.Finish(response_, status, FinishTag());
    } else {
      reader_.FinishWithError(status, FinishTag());
    }
  }

 private:
  friend class AsyncService;
  ByteBuffer response_;
  grpc::ServerAsyncReader<ByteBuffer, ByteBuffer> reader_;
  Tag tag_;
};

class AsyncDownload final : public AsyncCall<grpc::ServerContext> {
 public:
  AsyncDownload() : writer_(&context_) {}
  void SendInitialMetadata() override {
    writer_.SendInitialMetadata(&tag_);
    tag_.Await();
  }
  bool Read(ByteBuffer* message) override {
    if (std::exchange(read_, true)) return false;
    message->Swap(&request_);
    return true;
  }
  bool Write(const ByteBuffer& message, grpc::WriteOptions options) override {
    writer_.Write(message, options, &tag_);
    return tag_.Await();
  }
  void Finish(const grpc::Status& status) override {
    writer_.Finish(status, FinishTag());
  }
  void WriteAndFinish(const ByteBuffer& message,
                      const grpc::Status& status) override {
    writer_.WriteAndFinish(message, grpc::WriteOptions(), status, FinishTag());
  }

 private:
  friend class AsyncService;
  ByteBuffer request_;
  bool read_ = false;
  grpc::ServerAsyncWriter<ByteBuffer> writer_;
  Tag tag_;
};

template <typename Context>
class AsyncChat final : public AsyncCall<Context> {
 public:
  AsyncChat() : stream_(&this->context_) {}
  void SendInitialMetadata() override {
    stream_.SendInitialMetadata(&write_);
    write_.Await();
  }
  bool Read(ByteBuffer* message) override {
    stream_.Read(message, &read_);
    return read_.Await();
  }
  bool Write(const ByteBuffer& message, grpc::WriteOptions options) override {
    stream_.Write(message, options, &write_);
    return write_.Await();
  }
  void Finish(const grpc::Status& status) override {
    stream_.Finish(status, this->FinishTag());
  }
  void WriteAndFinish(const ByteBuffer& message,
                      const grpc::Status& status) override {
    stream_.WriteAndFinish(message, grpc::WriteOptions(), status,
                           this->FinishTag());
  }

 private:
  friend class AsyncService;
  friend class GenericAsyncService;
  grpc::ServerAsyncReaderWriter<ByteBuffer, ByteBuffer> stream_;
  Tag read_, write_;
};

// The number of methods that still wait for calls.
class Waiting {
 public:
  void Begin() {
    std::lock_guard<std::mutex> lock(mu_);
    ++count_;
  }
  void End() {
    std::lock_guard<std::mutex> lock(mu_);
    if (--count_ == 0) none_.notify_all();
  }
  void AwaitNone() {
    std::unique_lock<std::mutex> lock(mu_);
    none_.wait(lock, [this] { return count_ == 0; });
  }

 private:
  std::mutex mu_;
  std::condition_variable none_;
  int count_ = 0;
};

// The objects that the calls of one service share.
struct Means {
  const Handler* handler;
  Crew* crew;
  Waiting* waiting;
};

// Waits for the next call of one method, then serves it on a thread.
template <typename Call>
class Arrival final : public Tag {
 public:
  // Requests a call from gRPC, with this tag.
  using Request = std::function<void(Call*, Tag*)>;

  static void Await(const Means& means, Request request) {
    means.waiting->Begin();
    auto* arrival = new Arrival(means, std::move(request));
    arrival->request_(arrival->call_.get(), arrival);
  }
  void Set(bool ok) override {
    std::unique_ptr<Arrival> self(this);
    if (ok) {
      Await(means_, request_);
      means_.crew->Run([handler = means_.handler, call = call_.release()] {
        (*handler)(call);
        call->AwaitEnd();
        delete call;
      });
    }  // otherwise the server has been shut down
    means_.waiting->End();
  }

 private:
  Arrival(const Means& means, Request request)
      : means_(means), request_(std::move(request)) {}

  const Means means_;
  const Request request_;
  std::unique_ptr<Call> call_ = std::make_unique<Call>();
};

// Serves the remaining calls until the server ends. Nobody uses the queue
// afterwards.
void StopServing(const Means& means, ServerPump* pump) {
  means.waiting->AwaitNone();
  means.crew->Join();
  pump->Stop();
}

class AsyncService final : public ApiService, private grpc::Service {
 public:
  AsyncService(const Handler* handler, Crew* crew)
      : means_{handler, crew, &waiting_} {
    Add(Kind::kUnary, RpcMethod::NORMAL_RPC);
    Add(Kind::kUpload, RpcMethod::CLIENT_STREAMING);
    Add(Kind::kDownload, RpcMethod::SERVER_STREAMING);
    Add(Kind::kChat, RpcMethod::BIDI_STREAMING);
  }
  void Register(grpc::ServerBuilder* builder) override {
    builder->RegisterService(this);
    pump_ = std::make_unique<ServerPump>(builder->AddCompletionQueue());
  }
  void Begin() override {
    auto* queue = pump_->queue();
    Arrival<AsyncUnary>::Await(
        means_, [this, queue](AsyncUnary* call, Tag* tag) {
          RequestAsyncUnary(0, &call->context_, &call->request_, &call->writer_,
                            queue, queue, tag);
        });
    Arrival<AsyncUpload>::Await(
        means_, [this, queue](AsyncUpload* call, Tag* tag) {
          RequestAsyncClientStreaming(1, &call->context_, &call->reader_, queue,
                                      queue, tag);
        });
    Arrival<AsyncDownload>::Await(
        means_, [this, queue](AsyncDownload* call, Tag* tag) {
          RequestAsyncServerStreaming(2, &call->context_, &call->request_,
                                      &call->writer_, queue, queue, tag);
        });
    using Chat = AsyncChat<grpc::ServerContext>;
    Arrival<Chat>::Await(means_, [this, queue](Chat* call, Tag* tag) {
      RequestAsyncBidiStreaming(3, &call->context_, &call->stream_, queue,
                                queue, tag);
    });
  }
  void End() override { StopServing(means_, pump_.get()); }

 private:
  void Add(Kind kind, RpcMethod::RpcType type) {
    const int index = static_cast<int>(kind);
    names_[index] = MethodName(ServerApi::kAsync, kind);
    AddMethod(new grpc::internal::RpcServiceMethod(names_[index].c_str(), type,
                                                   nullptr));
    MarkMethodRaw(index);
  }

  Waiting waiting_;
  const Means means_;
  std::string names_[4];
  std::unique_ptr<ServerPump> pump_;
};

class GenericAsyncService final : public ApiService {
 public:
  GenericAsyncService(const Handler* handler, Crew* crew)
      : means_{handler, crew, &waiting_} {}
  void Register(grpc::ServerBuilder* builder) override {
    builder->RegisterAsyncGenericService(&service_);
    pump_ = std::make_unique<ServerPump>(builder->AddCompletionQueue());
  }
  void Begin() override {
    using Chat = AsyncChat<grpc::GenericServerContext>;
    Arrival<Chat>::Await(means_, [this](Chat* call, Tag* tag) {
      auto* queue = pump_->queue();
      service_.RequestCall(&call->context_, &call->stream_, queue, queue, tag);
    });
  }
  void End() override { StopServing(means_, pump_.get()); }

 private:
  Waiting waiting_;
  const Means means_;
  grpc::AsyncGenericService service_;
  std::unique_ptr<ServerPump> pump_;
};

}  // namespace

std::unique_ptr<ApiService> NewAsyncService(const Handler* handler,
                                            Crew* crew) {
  return std::make_unique<AsyncService>(handler, crew);
}

std::unique_ptr<ApiService> NewGenericAsyncService(const Handler* handler,
                                                   Crew* crew) {
  return std::make_unique<GenericAsyncService>(handler, crew);
}

}  // namespace penstock::oracle
