#include "transport/grpc/slice_bytes.h"

#include <memory>
#include <utility>

namespace penstock {
namespace core {

memory::Payload ToPayload(const grpc_core::SliceBuffer& buffer) {
  memory::Payload payload;
  for (size_t i = 0; i < buffer.Count(); ++i) {
    // A short slice holds its bytes itself: point into the shared copy.
    auto slice = std::make_shared<grpc_core::Slice>(buffer.RefSlice(i));
    payload.Append(memory::Bytes{slice->data(), slice->size(), slice});
  }
  return payload;
}

grpc_core::Slice ToSlice(memory::Bytes bytes) {
  const bool copies =
      bytes.size <= GRPC_SLICE_INLINED_SIZE ||
      (bytes.owner == nullptr && bytes.size < memory::kAlignedBytes);
  if (copies) {
    return grpc_core::Slice::FromCopiedBuffer(
        reinterpret_cast<const char*>(bytes.data), bytes.size);
  }
  absl::StatusOr<memory::Bytes> owned = memory::Own(std::move(bytes));
  // An eager message: without memory for that, gRPC itself ends the process.
  GPR_ASSERT(owned.ok());
  bytes = *std::move(owned);
  auto* owner = new std::shared_ptr<const void>(std::move(bytes.owner));
  // gRPC does not write to slices that it did not make.
  return grpc_core::Slice(grpc_slice_new_with_user_data(
      const_cast<uint8_t*>(bytes.data), bytes.size,
      [](void* arg) { delete static_cast<std::shared_ptr<const void>*>(arg); },
      owner));
}

}  // namespace core
}  // namespace penstock
