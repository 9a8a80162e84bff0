#include "bench/rpc/message/message.h"

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "bench/rpc/message/buffers.h"
#include "bench/rpc/message/payload.pb.h"
#include "bench/rpc/message/tensor_form.h"
#include "grpc/slice.h"
#include "grpcpp/impl/codegen/proto_utils.h"
#include "grpcpp/support/slice.h"

namespace penstock {
namespace bench {
namespace {

using Write = absl::FunctionRef<void(uint8_t*)>;
using Read = absl::FunctionRef<void(absl::Span<const uint8_t>)>;

std::atomic<MessageForm> message_form{MessageForm::kRaw};

// The buffers of each message. Set before the first message is made.
struct {
  int count = 1;
  BufferSizes mixed;
  size_t mixed_bytes = 0;
} buffers;

// The minimal size of a message, kMinPayload of payload.h. payload.h includes
// this header, so the constant is repeated here.
constexpr size_t kSmallest = 8;

absl::Span<const uint8_t> AsSpan(absl::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

template <typename Message>
grpc::ByteBuffer Serialize(const Message& message) {
  grpc::ByteBuffer buffer;
  bool own_buffer = false;
  grpc::SerializationTraits<Message>::Serialize(message, &buffer, &own_buffer);
  return buffer;
}

void WriteField(std::string* field, size_t size, size_t offset,
                WritePart write) {
  field->resize(size);
  write({reinterpret_cast<uint8_t*>(&(*field)[0]), size}, offset);
}

grpc::ByteBuffer MakeProtobuf(const BufferSizes& parts, WritePart write) {
  if (parts.size() == 1) {
    BytesMessage message;
    WriteField(message.mutable_body(), parts[0], 0, write);
    return Serialize(message);
  }
  BuffersMessage message;
  size_t offset = 0;
  for (size_t size : parts) {
    WriteField(message.add_bodies(), size, offset, write);
    offset += size;
  }
  return Serialize(message);
}

// Parses a protobuf message of one or of several buffers. Both have the same
// encoding.
absl::Status ReadProtobuf(grpc::ByteBuffer message, Read read) {
  BuffersMessage several;
  BytesMessage single;
  const bool one = buffers.count == 1 && buffers.mixed.empty();
  const grpc::Status status =
      one ? grpc::SerializationTraits<BytesMessage>::Deserialize(&message,
                                                                 &single)
          : grpc::SerializationTraits<BuffersMessage>::Deserialize(&message,
                                                                   &several);
  if (!status.ok()) return absl::DataLossError(status.error_message());
  if (one) read(AsSpan(single.body()));
  for (const std::string& body : several.bodies()) read(AsSpan(body));
  return absl::OkStatus();
}

// Returns the message, or ends the process if there is none, because the
// figures would be wrong. The peer processes notice the end of this process.
grpc::ByteBuffer MessageOrExit(absl::StatusOr<grpc::ByteBuffer> message) {
  if (message.ok()) return *std::move(message);
  std::fprintf(stderr, "rpc: make a message: %s\n",
               message.status().ToString().c_str());
  // Calls _exit(), which runs no destructors, because other threads are in
  // calls.
  _exit(1);
}

grpc::ByteBuffer MakeSlices(const BufferSizes& parts, WritePart write) {
  if (MessagesAreOnDevice()) {
    return MessageOrExit(MakeOnDevice(parts, write));
  }
  absl::InlinedVector<grpc::Slice, 1> slices;
  size_t offset = 0;
  for (size_t size : parts) {
    grpc_slice raw = grpc_slice_malloc(size);
    write({GRPC_SLICE_START_PTR(raw), size}, offset);
    slices.emplace_back(raw, grpc::Slice::STEAL_REF);
    offset += size;
  }
  return grpc::ByteBuffer(slices.data(), slices.size());
}

BufferSizes PartsOf(size_t bytes) {
  if (bytes == kSmallest) return {bytes};
  if (bytes == buffers.mixed_bytes) return buffers.mixed;
  return EqualBuffers(buffers.count, bytes);
}

}  // namespace

void SetMessageForm(MessageForm form) {
  message_form = form;
  if (form == MessageForm::kTensor) PutTensorsIntoPool();
}

void SetMessageBuffers(int count, BufferSizes mixed) {
  buffers.count = count;
  buffers.mixed_bytes = std::accumulate(mixed.begin(), mixed.end(), size_t{0});
  buffers.mixed = std::move(mixed);
}

grpc::ByteBuffer MakeMessage(size_t bytes, WritePart write) {
  const BufferSizes parts = PartsOf(bytes);
  switch (message_form.load(std::memory_order_relaxed)) {
    case MessageForm::kProtobuf:
      return MakeProtobuf(parts, write);
    case MessageForm::kTensor:
      return MessageOrExit(MakeTensors(parts, write));
    case MessageForm::kRaw:
      break;
  }
  return MakeSlices(parts, write);
}

absl::Status ReadMessage(const grpc::ByteBuffer& message, Read read) {
  switch (message_form.load(std::memory_order_relaxed)) {
    case MessageForm::kProtobuf:
      return ReadProtobuf(message, read);
    case MessageForm::kTensor:
      return ReadTensors(message, read);
    case MessageForm::kRaw:
      break;
  }
  if (MessagesAreOnDevice()) return ReadFromDevice(message, read);
  ReadRawMessage(message, read);
  return absl::OkStatus();
}

grpc::ByteBuffer MakeRawMessage(size_t bytes, Write write) {
  grpc_slice raw = grpc_slice_malloc(bytes);
  write(GRPC_SLICE_START_PTR(raw));
  const grpc::Slice slice(raw, grpc::Slice::STEAL_REF);
  return grpc::ByteBuffer(&slice, 1);
}

// Reads a message of one slice, the common case, without a vector.
void ReadRawMessage(const grpc::ByteBuffer& message, Read read) {
  grpc::Slice single;
  if (message.TrySingleSlice(&single).ok()) {
    read({single.begin(), single.size()});
    return;
  }
  std::vector<grpc::Slice> slices;
  if (!message.Dump(&slices).ok()) return;
  for (const grpc::Slice& slice : slices) read({slice.begin(), slice.size()});
}

}  // namespace bench
}  // namespace penstock
