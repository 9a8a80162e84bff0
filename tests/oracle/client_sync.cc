#include <utility>

#include "grpcpp/impl/client_unary_call.h"
#include "grpcpp/impl/rpc_method.h"
#include "grpcpp/support/sync_stream.h"
#include "tests/oracle/client_call.h"

namespace penstock::oracle {
namespace {

using grpc::ByteBuffer;
using grpc::internal::RpcMethod;

// A blocking call with one request and one response. Like the call of a
// generated stub, but without a message type.
class SyncUnary final : public ClientCall {
 public:
  explicit SyncUnary(const ClientParts& parts) : parts_(parts) {}

  bool Write(const ByteBuffer& message, grpc::WriteOptions) override {
    request_ = message;
    return true;
  }
  bool WritesDone() override { return true; }
  bool Read(ByteBuffer* message) override {
    if (std::exchange(made_, true)) return false;
    status_ = grpc::internal::BlockingUnaryCall(
        parts_.channel.get(),
        RpcMethod(parts_.method.c_str(), nullptr, RpcMethod::NORMAL_RPC,
                  parts_.channel),
        parts_.context, request_, message);
    return status_.ok();
  }
  grpc::Status Finish() override { return status_; }

 private:
  const ClientParts parts_;
  ByteBuffer request_;
  bool made_ = false;
  grpc::Status status_;
};

class SyncUpload final : public ClientCall {
 public:
  explicit SyncUpload(const ClientParts& parts)
      : parts_(parts),
        writer_(grpc::internal::ClientWriterFactory<ByteBuffer>::Create(
            parts_.channel.get(),
            RpcMethod(parts_.method.c_str(), nullptr,
                      RpcMethod::CLIENT_STREAMING, parts_.channel),
            parts_.context, &response_)) {}

  bool Write(const ByteBuffer& message, grpc::WriteOptions options) override {
    return writer_->Write(message, options);
  }
  bool WritesDone() override { return writer_->WritesDone(); }
  void AwaitInitialMetadata() override { writer_->WaitForInitialMetadata(); }
  bool Read(ByteBuffer* message) override {
    if (std::exchange(finished_, true)) return false;
    status_ = writer_->Finish();
    message->Swap(&response_);
    return status_.ok();
  }
  grpc::Status Finish() override { return status_; }

 private:
  const ClientParts parts_;
  ByteBuffer response_;
  std::unique_ptr<grpc::ClientWriter<ByteBuffer>> writer_;
  bool finished_ = false;
  grpc::Status status_;
};

class SyncDownload final : public ClientCall {
 public:
  explicit SyncDownload(const ClientParts& parts) : parts_(parts) {}

  bool Write(const ByteBuffer& message, grpc::WriteOptions) override {
    reader_.reset(grpc::internal::ClientReaderFactory<ByteBuffer>::Create(
        parts_.channel.get(),
        RpcMethod(parts_.method.c_str(), nullptr, RpcMethod::SERVER_STREAMING,
                  parts_.channel),
        parts_.context, message));
    return true;
  }
  bool WritesDone() override { return true; }
  void AwaitInitialMetadata() override { reader_->WaitForInitialMetadata(); }
  bool Read(ByteBuffer* message) override { return reader_->Read(message); }
  grpc::Status Finish() override { return reader_->Finish(); }

 private:
  const ClientParts parts_;
  std::unique_ptr<grpc::ClientReader<ByteBuffer>> reader_;
};

class SyncChat final : public ClientCall {
 public:
  explicit SyncChat(const ClientParts& parts)
      : parts_(parts),
        stream_(
            grpc::internal::ClientReaderWriterFactory<ByteBuffer, ByteBuffer>::
                Create(parts_.channel.get(),
                       RpcMethod(parts_.method.c_str(), nullptr,
                                 RpcMethod::BIDI_STREAMING, parts_.channel),
                       parts_.context)) {}

  bool Write(const ByteBuffer& message, grpc::WriteOptions options) override {
    return stream_->Write(message, options);
  }
  bool WritesDone() override { return stream_->WritesDone(); }
  void AwaitInitialMetadata() override { stream_->WaitForInitialMetadata(); }
  bool Read(ByteBuffer* message) override { return stream_->Read(message); }
  grpc::Status Finish() override { return stream_->Finish(); }

 private:
  const ClientParts parts_;
  std::unique_ptr<grpc::ClientReaderWriter<ByteBuffer, ByteBuffer>> stream_;
};

}  // namespace

std::unique_ptr<ClientCall> NewSyncCall(Kind kind, const ClientParts& parts) {
  switch (kind) {
    case Kind::kUnary:
      return std::make_unique<SyncUnary>(parts);
    case Kind::kUpload:
      return std::make_unique<SyncUpload>(parts);
    case Kind::kDownload:
      return std::make_unique<SyncDownload>(parts);
    case Kind::kChat:
      return std::make_unique<SyncChat>(parts);
  }
  return nullptr;
}

std::unique_ptr<ClientCall> NewCall(const Plan& plan,
                                    const ClientParts& parts) {
  switch (plan.client) {
    case ClientApi::kSync:
      return NewSyncCall(plan.kind, parts);
    case ClientApi::kAsync:
      return NewAsyncCall(plan.kind, parts, /*generic=*/false);
    case ClientApi::kGenericAsync:
      return NewAsyncCall(plan.kind, parts, /*generic=*/true);
    case ClientApi::kCallback:
      return NewCallbackCall(plan.kind, parts, /*generic=*/false);
    case ClientApi::kGenericCallback:
      return NewCallbackCall(plan.kind, parts, /*generic=*/true);
  }
  return nullptr;
}

}  // namespace penstock::oracle
