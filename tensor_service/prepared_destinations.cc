#include "tensor_service/prepared_destinations.h"

#include <utility>

#include "tensor_service/buffer.h"

namespace penstock::tensor {

PreparedDestinations::PreparedDestinations(
    std::vector<Destination> destinations)
    : destinations_(std::move(destinations)),
      posted_(Post(destinations_, /*often=*/true)) {}

std::vector<ReceiveRange> RangesOf(absl::Span<const Destination> destinations) {
  std::vector<ReceiveRange> ranges;
  for (const Destination& destination : destinations) {
    const Tensor& into = destination.into;
    if (into.byte_size() == 0 || !into.buffer()->writable()) continue;
    if (!into.device().is_host()) continue;  // copied there
    ranges.push_back({into.buffer()->mutable_data(), into.byte_size()});
  }
  return ranges;
}

std::shared_ptr<PostedRanges> Post(absl::Span<const Destination> destinations,
                                   bool often) {
  DirectReceiver* const receiver = GetDirectReceiver();
  if (receiver == nullptr) return nullptr;
  const std::vector<ReceiveRange> ranges = RangesOf(destinations);
  if (ranges.empty()) return nullptr;
  auto owner = std::make_shared<std::vector<std::shared_ptr<Buffer>>>();
  for (const Destination& destination : destinations) {
    owner->push_back(destination.into.buffer());
  }
  return receiver->Post(ranges, std::move(owner), often);
}

void Refuse(const absl::Status& why, absl::Span<Destination> destinations) {
  for (Destination& destination : destinations) {
    destination.used = why;
    destination.landed = false;
  }
}

}  // namespace penstock::tensor
