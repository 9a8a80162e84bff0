#include <utility>

#include "grpcpp/impl/rpc_service_method.h"
#include "grpcpp/impl/service_type.h"
#include "grpcpp/support/method_handler.h"
#include "grpcpp/support/sync_stream.h"
#include "tests/oracle/server_call.h"

namespace penstock::oracle {
namespace {

using grpc::ByteBuffer;
using grpc::ServerContext;
using grpc::internal::RpcMethod;

// A call of a synchronous server. The request is present when a handler begins.
class SyncCall : public ServerCall {
 public:
  SyncCall(ServerContext* context, const ByteBuffer* request,
           ByteBuffer* response)
      : context_(context), request_(request), response_(response) {}

  grpc::ServerContextBase* context() override { return context_; }
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
  void Finish(const grpc::Status& status) override { status_ = status; }
  const grpc::Status& status() const { return status_; }

 private:
  ServerContext* const context_;
  const ByteBuffer* request_;
  ByteBuffer* const response_;
  grpc::Status status_;
};

class SyncUpload final : public SyncCall {
 public:
  SyncUpload(ServerContext* context, grpc::ServerReader<ByteBuffer>* reader,
             ByteBuffer* response)
      : SyncCall(context, nullptr, response), reader_(reader) {}
  void SendInitialMetadata() override { reader_->SendInitialMetadata(); }
  bool Read(ByteBuffer* message) override { return reader_->Read(message); }

 private:
  grpc::ServerReader<ByteBuffer>* const reader_;
};

class SyncDownload final : public SyncCall {
 public:
  SyncDownload(ServerContext* context, const ByteBuffer* request,
               grpc::ServerWriter<ByteBuffer>* writer)
      : SyncCall(context, request, nullptr), writer_(writer) {}
  void SendInitialMetadata() override { writer_->SendInitialMetadata(); }
  bool Write(const ByteBuffer& message, grpc::WriteOptions options) override {
    return writer_->Write(message, options);
  }
  void WriteAndFinish(const ByteBuffer& message,
                      const grpc::Status& status) override {
    writer_->WriteLast(message, grpc::WriteOptions());
    Finish(status);
  }

 private:
  grpc::ServerWriter<ByteBuffer>* const writer_;
};

using Stream = grpc::ServerReaderWriter<ByteBuffer, ByteBuffer>;

class SyncChat final : public SyncCall {
 public:
  SyncChat(ServerContext* context, Stream* stream)
      : SyncCall(context, nullptr, nullptr), stream_(stream) {}
  void SendInitialMetadata() override { stream_->SendInitialMetadata(); }
  bool Read(ByteBuffer* message) override { return stream_->Read(message); }
  bool Write(const ByteBuffer& message, grpc::WriteOptions options) override {
    return stream_->Write(message, options);
  }
  void WriteAndFinish(const ByteBuffer& message,
                      const grpc::Status& status) override {
    stream_->WriteLast(message, grpc::WriteOptions());
    Finish(status);
  }

 private:
  Stream* const stream_;
};

// A service like a generated one, without a message type.
class SyncService final : public ApiService, private grpc::Service {
 public:
  explicit SyncService(const Handler* handler) : handler_(handler) {
    AddUnary();
    AddUpload();
    AddDownload();
    AddChat();
  }
  void Register(grpc::ServerBuilder* builder) override {
    builder->RegisterService(this);
  }

 private:
  template <typename Call>
  grpc::Status Serve(Call call) {
    (*handler_)(&call);
    return call.status();
  }
  void Add(Kind kind, RpcMethod::RpcType type,
           grpc::internal::MethodHandler* handler) {
    names_[static_cast<size_t>(kind)] = MethodName(ServerApi::kSync, kind);
    AddMethod(new grpc::internal::RpcServiceMethod(
        names_[static_cast<size_t>(kind)].c_str(), type, handler));
  }
  void AddUnary() {
    Add(Kind::kUnary, RpcMethod::NORMAL_RPC,
        new grpc::internal::RpcMethodHandler<SyncService, ByteBuffer,
                                             ByteBuffer>(
            [](SyncService* self, ServerContext* context,
               const ByteBuffer* request, ByteBuffer* response) {
              return self->Serve(SyncCall(context, request, response));
            },
            this));
  }
  void AddUpload() {
    Add(Kind::kUpload, RpcMethod::CLIENT_STREAMING,
        new grpc::internal::ClientStreamingHandler<SyncService, ByteBuffer,
                                                   ByteBuffer>(
            [](SyncService* self, ServerContext* context,
               grpc::ServerReader<ByteBuffer>* reader, ByteBuffer* response) {
              return self->Serve(SyncUpload(context, reader, response));
            },
            this));
  }
  void AddDownload() {
    Add(Kind::kDownload, RpcMethod::SERVER_STREAMING,
        new grpc::internal::ServerStreamingHandler<SyncService, ByteBuffer,
                                                   ByteBuffer>(
            [](SyncService* self, ServerContext* context,
               const ByteBuffer* request,
               grpc::ServerWriter<ByteBuffer>* writer) {
              return self->Serve(SyncDownload(context, request, writer));
            },
            this));
  }
  void AddChat() {
    Add(Kind::kChat, RpcMethod::BIDI_STREAMING,
        new grpc::internal::BidiStreamingHandler<SyncService, ByteBuffer,
                                                 ByteBuffer>(
            [](SyncService* self, ServerContext* context, Stream* stream) {
              return self->Serve(SyncChat(context, stream));
            },
            this));
  }

  const Handler* const handler_;
  std::string names_[4];
};

}  // namespace

std::unique_ptr<ApiService> NewSyncService(const Handler* handler) {
  return std::make_unique<SyncService>(handler);
}

std::string MethodName(ServerApi api, Kind kind) {
  return "/oracle." + ToText(api) + "/" + ToText(kind);
}

}  // namespace penstock::oracle
