#include "tensor_service/prepared_destinations.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "tensor_service/buffer.h"
#include "tensor_service/device_memory.h"
#include "tensor_service/text.h"

namespace penstock::tensor {

PreparedDestinations::PreparedDestinations(
    std::vector<Destination> destinations, DeviceTensors device_tensors)
    : destinations_(std::move(destinations)),
      device_tensors_(device_tensors),
      posted_(Post(destinations_, /*often=*/true, device_tensors)) {}

std::vector<ReceiveRange> RangesOf(absl::Span<const Destination> destinations) {
  std::vector<ReceiveRange> ranges;
  for (const Destination& destination : destinations) {
    const Tensor& into = destination.into;
    if (into.byte_size() == 0 || !into.buffer()->writable()) continue;
    if (into.device().is_host()) {
      ranges.push_back({into.buffer()->mutable_data(), into.byte_size()});
    } else if (GetDeviceMemory() != nullptr) {
      ranges.push_back(
          {reinterpret_cast<void*>(into.buffer()->device_address()),
           into.byte_size(), /*on_device=*/true});
    }
  }
  return ranges;
}

std::shared_ptr<PostedRanges> Post(absl::Span<const Destination> destinations,
                                   bool often, DeviceTensors device_tensors) {
  DirectReceiver* const receiver = GetDirectReceiver();
  if (receiver == nullptr) return nullptr;
  const std::vector<ReceiveRange> ranges = RangesOf(destinations);
  const bool anywhere =
      device_tensors == DeviceTensors::kKeep && GetDeviceMemory() != nullptr;
  if (ranges.empty() && !anywhere) return nullptr;
  auto owner = std::make_shared<std::vector<std::shared_ptr<Buffer>>>();
  for (const Destination& destination : destinations) {
    owner->push_back(destination.into.buffer());
  }
  return receiver->Post(ranges, std::move(owner), often, anywhere);
}

absl::StatusOr<const Destination*> FindUnready(
    absl::Span<const Destination> destinations) {
  for (const Destination& destination : destinations) {
    const std::shared_ptr<Buffer>& buffer = destination.into.buffer();
    const auto ready = buffer == nullptr ? nullptr : buffer->ready();
    DeviceMemory* const memory = GetDeviceMemory();
    // Skips destinations whose device work has ended. Without device memory,
    // nobody writes to a destination on a device, and its `used` has the
    // reason.
    if (ready == nullptr || memory == nullptr) continue;
    absl::StatusOr<bool> completed = memory->HasCompleted(*ready);
    if (!completed.ok()) {
      return absl::Status(
          completed.status().code(),
          absl::StrCat("wait for destination ", Quoted(destination.name), ": ",
                       completed.status().message()));
    }
    if (!*completed) return &destination;
  }
  return nullptr;
}

void Refuse(const absl::Status& why, absl::Span<Destination> destinations) {
  for (Destination& destination : destinations) {
    destination.used = why;
    destination.landed = false;
  }
}

}  // namespace penstock::tensor
