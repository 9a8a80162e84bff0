#include <utility>

#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/impl/rpc_method.h"
#include "grpcpp/support/async_stream.h"
#include "grpcpp/support/async_unary_call.h"
#include "tests/oracle/client_call.h"

namespace penstock::oracle {
namespace {

using grpc::ByteBuffer;
using grpc::internal::RpcMethod;

RpcMethod MethodOf(const ClientParts& parts, RpcMethod::RpcType type) {
  return RpcMethod(parts.method.c_str(), nullptr, type, parts.channel);
}

class AsyncUnary final : public ClientCall {
 public:
  AsyncUnary(const ClientParts& parts, bool generic)
      : parts_(parts), generic_(generic) {}

  bool Write(const ByteBuffer& message, grpc::WriteOptions) override {
    if (generic_) {
      grpc::GenericStub stub(parts_.channel);
      reader_ = stub.PrepareUnaryCall(parts_.context, parts_.method, message,
                                      parts_.queue);
    } else {
      reader_.reset(
          grpc::internal::ClientAsyncResponseReaderHelper::Create<ByteBuffer>(
              parts_.channel.get(), parts_.queue,
              MethodOf(parts_, RpcMethod::NORMAL_RPC), parts_.context,
              message));
    }
    reader_->StartCall();
    return true;
  }
  bool WritesDone() override { return true; }
  void AwaitInitialMetadata() override {
    reader_->ReadInitialMetadata(&tag_);
    tag_.Await();
  }
  bool Read(ByteBuffer* message) override {
    if (std::exchange(finished_, true)) return false;
    reader_->Finish(message, &status_, &tag_);
    tag_.Await();
    return status_.ok();
  }
  grpc::Status Finish() override { return status_; }

 private:
  const ClientParts parts_;
  const bool generic_;
  std::unique_ptr<grpc::ClientAsyncResponseReader<ByteBuffer>> reader_;
  Tag tag_;
  bool finished_ = false;
  grpc::Status status_;
};

class AsyncUpload final : public ClientCall {
 public:
  explicit AsyncUpload(const ClientParts& parts)
      : parts_(parts),
        writer_(grpc::internal::ClientAsyncWriterFactory<ByteBuffer>::Create(
            parts_.channel.get(), parts_.queue,
            MethodOf(parts_, RpcMethod::CLIENT_STREAMING), parts_.context,
            &response_, /*start=*/false, nullptr)) {}

  void Start(bool corked) {
    writer_->StartCall(&tag_);
    if (!corked) tag_.Await();
  }
  bool Write(const ByteBuffer& message, grpc::WriteOptions options) override {
    writer_->Write(message, options, &tag_);
    return tag_.Await();
  }
  bool WritesDone() override {
    writer_->WritesDone(&tag_);
    return tag_.Await();
  }
  void AwaitInitialMetadata() override {
    writer_->ReadInitialMetadata(&tag_);
    tag_.Await();
  }
  bool Read(ByteBuffer* message) override {
    if (std::exchange(finished_, true)) return false;
    writer_->Finish(&status_, &tag_);
    tag_.Await();
    message->Swap(&response_);
    return status_.ok();
  }
  grpc::Status Finish() override { return status_; }

 private:
  const ClientParts parts_;
  ByteBuffer response_;
  std::unique_ptr<grpc::ClientAsyncWriter<ByteBuffer>> writer_;
  Tag tag_;
  bool finished_ = false;
  grpc::Status status_;
};

class AsyncDownload final : public ClientCall {
 public:
  explicit AsyncDownload(const ClientParts& parts) : parts_(parts) {}

  bool Write(const ByteBuffer& message, grpc::WriteOptions) override {
    reader_.reset(grpc::internal::ClientAsyncReaderFactory<ByteBuffer>::Create(
        parts_.channel.get(), parts_.queue,
        MethodOf(parts_, RpcMethod::SERVER_STREAMING), parts_.context, message,
        /*start=*/false, nullptr));
    reader_->StartCall(&tag_);
    return tag_.Await();
  }
  bool WritesDone() override { return true; }
  void AwaitInitialMetadata() override {
    reader_->ReadInitialMetadata(&tag_);
    tag_.Await();
  }
  bool Read(ByteBuffer* message) override {
    reader_->Read(message, &tag_);
    return tag_.Await();
  }
  grpc::Status Finish() override {
    grpc::Status status;
    reader_->Finish(&status, &tag_);
    tag_.Await();
    return status;
  }

 private:
  const ClientParts parts_;
  std::unique_ptr<grpc::ClientAsyncReader<ByteBuffer>> reader_;
  Tag tag_;
};

class AsyncChat final : public ClientCall {
 public:
  AsyncChat(const ClientParts& parts, bool generic) : parts_(parts) {
    if (generic) {
      grpc::GenericStub stub(parts_.channel);
      stream_ = stub.PrepareCall(parts_.context, parts_.method, parts_.queue);
    } else {
      stream_.reset(
          grpc::internal::
              ClientAsyncReaderWriterFactory<ByteBuffer, ByteBuffer>::Create(
                  parts_.channel.get(), parts_.queue,
                  MethodOf(parts_, RpcMethod::BIDI_STREAMING), parts_.context,
                  /*start=*/false, nullptr));
    }
  }

  void Start(bool corked) {
    stream_->StartCall(&write_);
    if (!corked) write_.Await();
  }
  bool Write(const ByteBuffer& message, grpc::WriteOptions options) override {
    stream_->Write(message, options, &write_);
    return write_.Await();
  }
  bool WritesDone() override {
    stream_->WritesDone(&write_);
    return write_.Await();
  }
  void AwaitInitialMetadata() override {
    stream_->ReadInitialMetadata(&read_);
    read_.Await();
  }
  bool Read(ByteBuffer* message) override {
    stream_->Read(message, &read_);
    return read_.Await();
  }
  grpc::Status Finish() override {
    grpc::Status status;
    stream_->Finish(&status, &read_);
    read_.Await();
    return status;
  }

 private:
  const ClientParts parts_;
  std::unique_ptr<grpc::ClientAsyncReaderWriter<ByteBuffer, ByteBuffer>>
      stream_;
  Tag read_, write_;
};

template <typename Call>
std::unique_ptr<ClientCall> Started(std::unique_ptr<Call> call,
                                    const ClientParts& parts) {
  call->Start(parts.corked);
  return call;
}

}  // namespace

std::unique_ptr<ClientCall> NewAsyncCall(Kind kind, const ClientParts& parts,
                                         bool generic) {
  if (kind == Kind::kUnary) return std::make_unique<AsyncUnary>(parts, generic);
  if (kind == Kind::kChat || generic) {
    return Started(std::make_unique<AsyncChat>(parts, generic), parts);
  }
  if (kind == Kind::kDownload) return std::make_unique<AsyncDownload>(parts);
  return Started(std::make_unique<AsyncUpload>(parts), parts);
}

}  // namespace penstock::oracle
