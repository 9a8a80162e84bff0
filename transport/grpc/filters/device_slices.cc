#include "transport/grpc/filters/device_slices.h"

#include <utility>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "transport/grpc/internal/slice_bytes.h"
#include "transport/memory/device_ranges.h"

namespace penstock {
namespace core {
namespace {

absl::Span<const uint8_t> SliceAt(const grpc_core::SliceBuffer& message,
                                  size_t i) {
  const grpc_slice& slice = message.c_slice_buffer()->slices[i];
  return {GRPC_SLICE_START_PTR(slice), GRPC_SLICE_LENGTH(slice)};
}

}  // namespace

bool HasDeviceSlices(const grpc_core::SliceBuffer& message) {
  for (size_t i = 0; i < message.Count(); ++i) {
    if (memory::FindDevice(SliceAt(message, i).data()) != nullptr) return true;
  }
  return false;
}

std::vector<absl::Span<const uint8_t>> DeviceSlicesOf(
    const grpc_core::SliceBuffer& message) {
  std::vector<absl::Span<const uint8_t>> slices;
  for (size_t i = 0; i < message.Count(); ++i) {
    const absl::Span<const uint8_t> slice = SliceAt(message, i);
    if (memory::FindDevice(slice.data()) != nullptr) slices.push_back(slice);
  }
  return slices;
}

absl::optional<absl::Status> PollDeviceSlices(
    const grpc_core::SliceBuffer& message) {
  for (const absl::Span<const uint8_t>& slice : DeviceSlicesOf(message)) {
    absl::optional<absl::Status> ready = memory::PollDevice(slice);
    if (!ready.has_value() || !ready->ok()) return ready;
  }
  return absl::OkStatus();
}

absl::Status CopyDeviceSlices(size_t keep_from,
                              grpc_core::SliceBuffer* message) {
  grpc_core::SliceBuffer copied;
  for (size_t i = 0; i < message->Count(); ++i) {
    const absl::Span<const uint8_t> slice = SliceAt(*message, i);
    memory::DeviceAccess* const device = memory::FindDevice(slice.data());
    if (device == nullptr || slice.size() >= keep_from) {
      copied.Append(message->RefSlice(i));
      continue;
    }
    absl::StatusOr<memory::Bytes> on_host = memory::ToHost(
        memory::Bytes{slice.data(), slice.size(), nullptr, device});
    if (!on_host.ok()) return on_host.status();
    copied.Append(ToSlice(*std::move(on_host)));
  }
  message->Swap(&copied);
  return absl::OkStatus();
}

}  // namespace core
}  // namespace penstock
