#include "grpcpp/support/server_callback.h"

#include <utility>

#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/impl/rpc_service_method.h"
#include "grpcpp/impl/service_type.h"
#include "tests/oracle/server_call.h"
#include "tests/oracle/tag.h"

namespace penstock::oracle {
namespace {

using grpc::ByteBuffer;
using grpc::CallbackServerContext;
using grpc::internal::RpcMethod;

// A call whose thread serves it, waits for its end and deletes it.
template <typename Call>
Call* Begin(const Handler* handler, Crew* crew, Call* call) {
  crew->Run([handler, call] {
    (*handler)(call);
    call->AwaitDone();
    delete call;
  });
  return call;
}

// The common part of the reactors; `Reactor` is gRPC's.
template <typename Reactor>
class CallOf : public ServerCall, public Reactor {
 public:
  explicit CallOf(CallbackServerContext* context) : context_(context) {}

  grpc::ServerContextBase* context() override { return context_; }
  void SendInitialMetadata() override {
    Reactor::StartSendInitialMetadata();
    initial_.Await();
  }
  void Finish(const grpc::Status& status) override { Reactor::Finish(status); }
  void AwaitDone() { done_.Await(); }
  void OnSendInitialMetadataDone(bool ok) override { initial_.Set(ok); }
  void OnDone() override { done_.Set(true); }

 private:
  CallbackServerContext* const context_;
  Tag initial_, done_;
};

class CallbackUnary final : public CallOf<grpc::ServerUnaryReactor> {
 public:
  CallbackUnary(CallbackServerContext* context, const ByteBuffer* request,
                ByteBuffer* response)
      : CallOf(context), request_(request), response_(response) {}
  bool Read(ByteBuffer* message) override {
    const ByteBuffer* request = std::exchange(request_, nullptr);
    if (request == nullptr) return false;
    *message = *request;
    return true;
  }
  bool Write(const ByteBuffer& message, grpc::WriteOptions) override {
    *response_ = message;
    return true;
  }

 private:
  const ByteBuffer* request_;
  ByteBuffer* const response_;
};

class CallbackUpload final
    : public CallOf<grpc::ServerReadReactor<ByteBuffer>> {
 public:
  CallbackUpload(CallbackServerContext* context, ByteBuffer* response)
      : CallOf(context), response_(response) {}
  bool Read(ByteBuffer* message) override {
    StartRead(message);
    return read_.Await();
  }
  bool Write(const ByteBuffer& message, grpc::WriteOptions) override {
    *response_ = message;
    return true;
  }
  void OnReadDone(bool ok) override { read_.Set(ok); }

 private:
  ByteBuffer* const response_;
  Tag read_;
};

// The common part of the two reactors that write.
template <typename Reactor>
class WritingCall : public CallOf<Reactor> {
 public:
  using CallOf<Reactor>::CallOf;
  bool Write(const ByteBuffer& message, grpc::WriteOptions options) override {
    Reactor::StartWrite(&message, options);
    return write_.Await();
  }
  void WriteAndFinish(const ByteBuffer& message,
                      const grpc::Status& status) override {
    last_ = message;
    Reactor::StartWriteAndFinish(&last_, grpc::WriteOptions(), status);
  }
  void OnWriteDone(bool ok) override { write_.Set(ok); }

 private:
  ByteBuffer last_;
  Tag write_;
};

class CallbackDownload final
    : public WritingCall<grpc::ServerWriteReactor<ByteBuffer>> {
 public:
  CallbackDownload(CallbackServerContext* context, const ByteBuffer* request)
      : WritingCall(context), request_(request) {}
  bool Read(ByteBuffer* message) override {
    const ByteBuffer* request = std::exchange(request_, nullptr);
    if (request == nullptr) return false;
    *message = *request;
    return true;
  }

 private:
  const ByteBuffer* request_;
};

class CallbackChat final
    : public WritingCall<grpc::ServerBidiReactor<ByteBuffer, ByteBuffer>> {
 public:
  using WritingCall::WritingCall;
  bool Read(ByteBuffer* message) override {
    StartRead(message);
    return read_.Await();
  }
  void OnReadDone(bool ok) override { read_.Set(ok); }

 private:
  Tag read_;
};

class CallbackService final : public ApiService, private grpc::Service {
 public:
  CallbackService(const Handler* handler, Crew* crew)
      : handler_(handler), crew_(crew) {
    Add(Kind::kUnary, RpcMethod::NORMAL_RPC,
        new grpc::internal::CallbackUnaryHandler<ByteBuffer, ByteBuffer>(
            [this](CallbackServerContext* context, const ByteBuffer* request,
                   ByteBuffer* response) {
              return oracle::Begin(
                  handler_, crew_,
                  new CallbackUnary(context, request, response));
            }));
    Add(Kind::kUpload, RpcMethod::CLIENT_STREAMING,
        new grpc::internal::CallbackClientStreamingHandler<ByteBuffer,
                                                           ByteBuffer>(
            [this](CallbackServerContext* context, ByteBuffer* response) {
              return oracle::Begin(handler_, crew_,
                                   new CallbackUpload(context, response));
            }));
    Add(Kind::kDownload, RpcMethod::SERVER_STREAMING,
        new grpc::internal::CallbackServerStreamingHandler<ByteBuffer,
                                                           ByteBuffer>(
            [this](CallbackServerContext* context, const ByteBuffer* request) {
              return oracle::Begin(handler_, crew_,
                                   new CallbackDownload(context, request));
            }));
    Add(Kind::kChat, RpcMethod::BIDI_STREAMING,
        new grpc::internal::CallbackBidiHandler<ByteBuffer, ByteBuffer>(
            [this](CallbackServerContext* context) {
              return oracle::Begin(handler_, crew_, new CallbackChat(context));
            }));
  }
  void Register(grpc::ServerBuilder* builder) override {
    builder->RegisterService(this);
  }

 private:
  void Add(Kind kind, RpcMethod::RpcType type,
           grpc::internal::MethodHandler* handler) {
    const int index = static_cast<int>(kind);
    names_[index] = MethodName(ServerApi::kCallback, kind);
    AddMethod(new grpc::internal::RpcServiceMethod(names_[index].c_str(), type,
                                                   nullptr));
    MarkMethodRawCallback(index, handler);
  }

  const Handler* const handler_;
  Crew* const crew_;
  std::string names_[4];
};

class GenericCallbackService final : public ApiService,
                                     private grpc::CallbackGenericService {
 public:
  GenericCallbackService(const oracle::Handler* handler, Crew* crew)
      : handler_(handler), crew_(crew) {}
  void Register(grpc::ServerBuilder* builder) override {
    builder->RegisterCallbackGenericService(this);
  }

 private:
  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    return oracle::Begin(handler_, crew_, new CallbackChat(context));
  }

  const oracle::Handler* const handler_;  // oracle's type, not gRPC's
  Crew* const crew_;
};

}  // namespace

std::unique_ptr<ApiService> NewCallbackService(const Handler* handler,
                                               Crew* crew) {
  return std::make_unique<CallbackService>(handler, crew);
}

std::unique_ptr<ApiService> NewGenericCallbackService(const Handler* handler,
                                                      Crew* crew) {
  return std::make_unique<GenericCallbackService>(handler, crew);
}

}  // namespace penstock::oracle
