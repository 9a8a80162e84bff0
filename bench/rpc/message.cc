#include "bench/rpc/message.h"

#include <atomic>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/rpc/payload.pb.h"
#include "grpc/slice.h"
#include "grpcpp/impl/codegen/proto_utils.h"
#include "grpcpp/support/slice.h"
#include "penstock/penstock.h"
#include "tensor_service/allocator.h"
#include "tensor_service/codec.h"
#include "tensor_service/pool_allocator.h"
#include "tensor_service/tensor.h"

namespace penstock {
namespace bench {
namespace {

using Write = absl::FunctionRef<void(uint8_t*)>;
using Read = absl::FunctionRef<void(absl::Span<const uint8_t>)>;

std::atomic<MessageForm> message_form{MessageForm::kRaw};

absl::Span<const uint8_t> AsSpan(absl::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

grpc::ByteBuffer MakeProtobuf(size_t bytes, Write write) {
  BytesMessage message;
  message.mutable_body()->resize(bytes);
  write(reinterpret_cast<uint8_t*>(&(*message.mutable_body())[0]));
  grpc::ByteBuffer buffer;
  bool own_buffer = false;
  grpc::SerializationTraits<BytesMessage>::Serialize(message, &buffer,
                                                     &own_buffer);
  return buffer;
}

absl::Status ReadProtobuf(grpc::ByteBuffer message, Read read) {
  BytesMessage parsed;
  const grpc::Status status =
      grpc::SerializationTraits<BytesMessage>::Deserialize(&message, &parsed);
  if (!status.ok()) return absl::DataLossError(status.error_message());
  read(AsSpan(parsed.body()));
  return absl::OkStatus();
}

grpc::ByteBuffer MakeTensor(size_t bytes, Write write) {
  const auto size = static_cast<int64_t>(bytes);
  auto tensor = tensor::Tensor::Allocate(tensor::DType::kUint8, {size});
  if (!tensor.ok()) return grpc::ByteBuffer();
  write(tensor->mutable_flat<uint8_t>()->data());
  tensor::Bundle bundle;
  bundle.tensors.push_back({"payload", *std::move(tensor)});
  return tensor::Encode(bundle).value_or(grpc::ByteBuffer());
}

absl::Status ReadTensor(const grpc::ByteBuffer& message, Read read) {
  const absl::StatusOr<tensor::Bundle> bundle = tensor::Decode(message);
  if (!bundle.ok()) return absl::DataLossError(bundle.status().message());
  if (bundle->tensors.size() != 1) {
    return absl::DataLossError(
        absl::StrCat(bundle->tensors.size(), " tensors instead of one"));
  }
  read(AsSpan(bundle->tensors[0].tensor.bytes()));
  return absl::OkStatus();
}

}  // namespace

void SetMessageForm(MessageForm form) {
  message_form = form;
  if (form == MessageForm::kTensor) {
    tensor::SetDefaultAllocator(tensor::PoolAllocator<Allocator>());
  }
}

grpc::ByteBuffer MakeMessage(size_t bytes, Write write) {
  switch (message_form.load(std::memory_order_relaxed)) {
    case MessageForm::kProtobuf:
      return MakeProtobuf(bytes, write);
    case MessageForm::kTensor:
      return MakeTensor(bytes, write);
    case MessageForm::kRaw:
      break;
  }
  return MakeRawMessage(bytes, write);
}

absl::Status ReadMessage(const grpc::ByteBuffer& message, Read read) {
  switch (message_form.load(std::memory_order_relaxed)) {
    case MessageForm::kProtobuf:
      return ReadProtobuf(message, read);
    case MessageForm::kTensor:
      return ReadTensor(message, read);
    case MessageForm::kRaw:
      break;
  }
  ReadRawMessage(message, read);
  return absl::OkStatus();
}

grpc::ByteBuffer MakeRawMessage(size_t bytes, Write write) {
  grpc_slice raw = grpc_slice_malloc(bytes);
  write(GRPC_SLICE_START_PTR(raw));
  const grpc::Slice slice(raw, grpc::Slice::STEAL_REF);
  return grpc::ByteBuffer(&slice, 1);
}

// The common case of one slice needs no vector.
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
