#include "grpcpp/support/client_callback.h"

#include <utility>

#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/impl/rpc_method.h"
#include "tests/oracle/client_call.h"

namespace penstock::oracle {
namespace {

using grpc::ByteBuffer;
using grpc::internal::RpcMethod;

RpcMethod MethodOf(const ClientParts& parts, RpcMethod::RpcType type) {
  return RpcMethod(parts.method.c_str(), nullptr, type, parts.channel);
}

class CallbackUnary final : public ClientCall,
                            private grpc::ClientUnaryReactor {
 public:
  CallbackUnary(const ClientParts& parts, bool generic)
      : parts_(parts), generic_(generic) {}

  bool Write(const ByteBuffer& message, grpc::WriteOptions) override {
    request_ = message;
    if (generic_) {
      grpc::GenericStub stub(parts_.channel);
      stub.PrepareUnaryCall(parts_.context, parts_.method, grpc::StubOptions(),
                            &request_, &response_, this);
    } else {
      grpc::internal::ClientCallbackUnaryFactory::Create<ByteBuffer,
                                                         ByteBuffer>(
          parts_.channel.get(), MethodOf(parts_, RpcMethod::NORMAL_RPC),
          parts_.context, &request_, &response_, this);
    }
    StartCall();
    return true;
  }
  bool WritesDone() override { return true; }
  void AwaitInitialMetadata() override { initial_.Await(); }
  bool Read(ByteBuffer* message) override {
    if (std::exchange(finished_, true)) return false;
    done_.Await();
    message->Swap(&response_);
    return status_.ok();
  }
  grpc::Status Finish() override { return status_; }

 private:
  void OnReadInitialMetadataDone(bool ok) override { initial_.Set(ok); }
  void OnDone(const grpc::Status& status) override {
    status_ = status;
    done_.Set(true);
  }

  const ClientParts parts_;
  const bool generic_;
  ByteBuffer request_, response_;
  Tag initial_, done_;
  bool finished_ = false;
  grpc::Status status_;
};

class CallbackUpload final : public ClientCall,
                             private grpc::ClientWriteReactor<ByteBuffer> {
 public:
  explicit CallbackUpload(const ClientParts& parts) : parts_(parts) {
    grpc::internal::ClientCallbackWriterFactory<ByteBuffer>::Create(
        parts_.channel.get(), MethodOf(parts_, RpcMethod::CLIENT_STREAMING),
        parts_.context, &response_, this);
    AddHold();
    StartCall();
  }

  bool Write(const ByteBuffer& message, grpc::WriteOptions options) override {
    StartWrite(&message, options);
    return write_.Await();
  }
  bool WritesDone() override {
    StartWritesDone();
    return write_.Await();
  }
  void AwaitInitialMetadata() override { initial_.Await(); }
  bool Read(ByteBuffer* message) override {
    if (std::exchange(finished_, true)) return false;
    RemoveHold();
    done_.Await();
    message->Swap(&response_);
    return status_.ok();
  }
  grpc::Status Finish() override { return status_; }

 private:
  void OnReadInitialMetadataDone(bool ok) override { initial_.Set(ok); }
  void OnWriteDone(bool ok) override { write_.Set(ok); }
  void OnWritesDoneDone(bool ok) override { write_.Set(ok); }
  void OnDone(const grpc::Status& status) override {
    status_ = status;
    done_.Set(true);
  }

  const ClientParts parts_;
  ByteBuffer response_;
  Tag initial_, write_, done_;
  bool finished_ = false;
  grpc::Status status_;
};

class CallbackDownload final : public ClientCall,
                               private grpc::ClientReadReactor<ByteBuffer> {
 public:
  explicit CallbackDownload(const ClientParts& parts) : parts_(parts) {}

  bool Write(const ByteBuffer& message, grpc::WriteOptions) override {
    request_ = message;
    grpc::internal::ClientCallbackReaderFactory<ByteBuffer>::Create(
        parts_.channel.get(), MethodOf(parts_, RpcMethod::SERVER_STREAMING),
        parts_.context, &request_, this);
    AddHold();
    StartCall();
    return true;
  }
  bool WritesDone() override { return true; }
  void AwaitInitialMetadata() override { initial_.Await(); }
  bool Read(ByteBuffer* message) override {
    StartRead(message);
    return read_.Await();
  }
  grpc::Status Finish() override {
    RemoveHold();
    done_.Await();
    return status_;
  }

 private:
  void OnReadInitialMetadataDone(bool ok) override { initial_.Set(ok); }
  void OnReadDone(bool ok) override { read_.Set(ok); }
  void OnDone(const grpc::Status& status) override {
    status_ = status;
    done_.Set(true);
  }

  const ClientParts parts_;
  ByteBuffer request_;
  Tag initial_, read_, done_;
  grpc::Status status_;
};

class CallbackChat final
    : public ClientCall,
      private grpc::ClientBidiReactor<ByteBuffer, ByteBuffer> {
 public:
  CallbackChat(const ClientParts& parts, bool generic) : parts_(parts) {
    if (generic) {
      grpc::GenericStub stub(parts_.channel);
      stub.PrepareBidiStreamingCall(parts_.context, parts_.method,
                                    grpc::StubOptions(), this);
    } else {
      grpc::internal::ClientCallbackReaderWriterFactory<
          ByteBuffer, ByteBuffer>::Create(parts_.channel.get(),
                                          MethodOf(parts_,
                                                   RpcMethod::BIDI_STREAMING),
                                          parts_.context, this);
    }
    AddHold();
    StartCall();
  }

  bool Write(const ByteBuffer& message, grpc::WriteOptions options) override {
    StartWrite(&message, options);
    return write_.Await();
  }
  bool WritesDone() override {
    StartWritesDone();
    return write_.Await();
  }
  void AwaitInitialMetadata() override { initial_.Await(); }
  bool Read(ByteBuffer* message) override {
    StartRead(message);
    return read_.Await();
  }
  grpc::Status Finish() override {
    RemoveHold();
    done_.Await();
    return status_;
  }

 private:
  void OnReadInitialMetadataDone(bool ok) override { initial_.Set(ok); }
  void OnReadDone(bool ok) override { read_.Set(ok); }
  void OnWriteDone(bool ok) override { write_.Set(ok); }
  void OnWritesDoneDone(bool ok) override { write_.Set(ok); }
  void OnDone(const grpc::Status& status) override {
    status_ = status;
    done_.Set(true);
  }

  const ClientParts parts_;
  Tag initial_, read_, write_, done_;
  grpc::Status status_;
};

}  // namespace

std::unique_ptr<ClientCall> NewCallbackCall(Kind kind, const ClientParts& parts,
                                            bool generic) {
  if (kind == Kind::kUnary) {
    return std::make_unique<CallbackUnary>(parts, generic);
  }
  if (kind == Kind::kChat || generic) {
    return std::make_unique<CallbackChat>(parts, generic);
  }
  if (kind == Kind::kDownload) return std::make_unique<CallbackDownload>(parts);
  return std::make_unique<CallbackUpload>(parts);
}

}  // namespace penstock::oracle
