#include "tests/e2e/raw.h"

#include <vector>

#include "grpcpp/support/slice.h"

namespace penstock::e2e {
namespace {

class Echo final : public grpc::ServerGenericBidiReactor {
 public:
  Echo() { StartRead(&message_); }

  void OnReadDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::OK);
    StartWrite(&message_);
  }
  void OnWriteDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::CANCELLED);
    StartRead(&message_);
  }
  void OnDone() override { delete this; }

 private:
  grpc::ByteBuffer message_;
};

}  // namespace

std::string Pattern(size_t size, unsigned seed) {
  std::string bytes(size, '\0');
  unsigned state = seed;
  for (char& byte : bytes) {
    state = state * 1664525 + 1013904223;  // Numerical Recipes' generator
    byte = static_cast<char>(state >> 24);
  }
  return bytes;
}

grpc::ByteBuffer ToBuffer(const std::string& bytes) {
  grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

std::string ToBytes(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  std::string bytes;
  if (!buffer.Dump(&slices).ok()) return bytes;
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

grpc::ServerGenericBidiReactor* RawEchoService::CreateReactor(
    grpc::GenericCallbackServerContext*) {
  return new Echo();
}

RawStream::RawStream(const std::shared_ptr<grpc::Channel>& channel,
                     grpc::ClientContext* context, const std::string& method)
    : stub_(channel), stream_(stub_.PrepareCall(context, method, &queue_)) {
  stream_->StartCall(this);
  Await();
}

RawStream::~RawStream() {
  queue_.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue_.Next(&tag, &ok)) {
  }
}

bool RawStream::Write(const grpc::ByteBuffer& message) {
  stream_->Write(message, this);
  return Await();
}

bool RawStream::WritesDone() {
  stream_->WritesDone(this);
  return Await();
}

absl::optional<std::string> RawStream::Read() {
  grpc::ByteBuffer buffer;
  stream_->Read(&buffer, this);
  if (!Await()) return absl::nullopt;
  return ToBytes(buffer);
}

grpc::Status RawStream::Finish() {
  grpc::Status status;
  stream_->Finish(&status, this);
  Await();
  return status;
}

bool RawStream::Await() {
  void* tag = nullptr;
  bool ok = false;
  return queue_.Next(&tag, &ok) && ok;
}

}  // namespace penstock::e2e
