#include "tests/adversary/service.h"

#include <algorithm>
#include <sstream>
#include <vector>

#include "grpcpp/support/slice.h"

namespace penstock::adversary {
namespace {

// Limits the memory that a peer can make the application itself use.
constexpr size_t kMaxReply = 16 << 20;

class Echo final : public grpc::ServerGenericBidiReactor {
 public:
  Echo() { StartRead(&message_); }
  void OnReadDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::OK);
    StartWrite(&message_);
  }
  void OnWriteDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::OK);
    StartRead(&message_);
  }
  void OnDone() override { delete this; }

 private:
  grpc::ByteBuffer message_;
};

class Reply final : public grpc::ServerGenericBidiReactor {
 public:
  Reply() { StartRead(&message_); }
  void OnReadDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::OK);
    std::istringstream(ToText(message_)) >> left_ >> size_;
    size_ = std::min(size_, kMaxReply);
    WriteNext();
  }
  void OnWriteDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::OK);
    WriteNext();
  }
  void OnDone() override { delete this; }

 private:
  void WriteNext() {
    if (left_-- <= 0) return Finish(grpc::Status::OK);
    message_ = ToBuffer(std::string(size_, '\0'));
    StartWrite(&message_);
  }

  grpc::ByteBuffer message_;
  int64_t left_ = 0;
  size_t size_ = 0;
};

class Unread final : public grpc::ServerGenericBidiReactor {
 public:
  void OnCancel() override { Finish(grpc::Status::CANCELLED); }
  void OnDone() override { delete this; }
};

class Unknown final : public grpc::ServerGenericBidiReactor {
 public:
  Unknown() {
    Finish(grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "no such call"));
  }
  void OnDone() override { delete this; }
};

}  // namespace

grpc::ByteBuffer ToBuffer(const std::string& text) {
  const grpc::Slice slice(text);
  return grpc::ByteBuffer(&slice, 1);
}

std::string ToText(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  if (!buffer.Dump(&slices).ok()) return std::string();
  std::string text;
  for (const grpc::Slice& slice : slices) {
    text.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return text;
}

grpc::ServerGenericBidiReactor* Service::CreateReactor(
    grpc::GenericCallbackServerContext* context) {
  if (context->method() == kEcho) return new Echo();
  if (context->method() == kReply) return new Reply();
  if (context->method() == kUnread) return new Unread();
  return new Unknown();
}

}  // namespace penstock::adversary
