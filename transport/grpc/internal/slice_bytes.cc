#include "transport/grpc/internal/slice_bytes.h"

#include <memory>
#include <utility>

#include "transport/grpc/internal/late_slices.h"
#include "transport/memory/device_ranges.h"

namespace penstock {
namespace core {

namespace {

// A slice that is released when the thread holds no locks, because the slice's
// memory belongs to the application.
struct HeldSlice {
  explicit HeldSlice(grpc_core::Slice held) : slice(std::move(held)) {}
  ~HeldSlice() { DropLate(std::move(slice)); }
  HeldSlice(const HeldSlice&) = delete;
  HeldSlice& operator=(const HeldSlice&) = delete;

  grpc_core::Slice slice;
};

// A declaration of device memory, for the lifetime of a slice.
struct DeviceOwner {
  explicit DeviceOwner(memory::Bytes held)
      : bytes(std::move(held)), range(bytes.span(), bytes.device, nullptr) {}

  const memory::Bytes bytes;
  const memory::DeviceRange range;  // destroyed before `bytes`
};

grpc_core::Slice ToDeviceSlice(memory::Bytes bytes) {
  auto* const owner = new DeviceOwner(std::move(bytes));
  return grpc_core::Slice(grpc_slice_new_with_user_data(
      const_cast<uint8_t*>(owner->bytes.data), owner->bytes.size,
      [](void* arg) { delete static_cast<DeviceOwner*>(arg); }, owner));
}

}  // namespace

memory::Payload ToPayload(const grpc_core::SliceBuffer& buffer) {
  memory::Payload payload;
  for (size_t i = 0; i < buffer.Count(); ++i) {
    // Refers to the bytes in `held`, because a short slice contains its bytes.
    auto held = std::make_shared<HeldSlice>(buffer.RefSlice(i));
    const grpc_core::Slice& slice = held->slice;
    payload.Append(memory::Bytes{slice.data(), slice.size(), held,
                                 memory::FindDevice(slice.data())});
  }
  return payload;
}

grpc_core::Slice ToSlice(memory::Bytes bytes) {
  if (bytes.device != nullptr) return ToDeviceSlice(std::move(bytes));
  const bool copies =
      bytes.size <= GRPC_SLICE_INLINED_SIZE ||
      (bytes.owner == nullptr && bytes.size < memory::kAlignedBytes);
  if (copies) {
    return grpc_core::Slice::FromCopiedBuffer(
        reinterpret_cast<const char*>(bytes.data), bytes.size);
  }
  absl::StatusOr<memory::Bytes> owned = memory::Own(std::move(bytes));
  // Only an eager message has no owner. If there is no memory for its few
  // bytes, ends the process, as gRPC does.
  GPR_ASSERT(owned.ok());
  bytes = *std::move(owned);
  auto* owner = new std::shared_ptr<const void>(std::move(bytes.owner));
  // Casts const away, which is safe: gRPC does not write to slices that others
  // made.
  return grpc_core::Slice(grpc_slice_new_with_user_data(
      const_cast<uint8_t*>(bytes.data), bytes.size,
      [](void* arg) { delete static_cast<std::shared_ptr<const void>*>(arg); },
      owner));
}

}  // namespace core
}  // namespace penstock
