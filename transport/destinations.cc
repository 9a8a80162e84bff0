#include "penstock/destinations.h"

#include <cstdint>
#include <utility>

#include "absl/memory/memory.h"
#include "transport/grpc/internal/call_destinations.h"
#include "transport/memory/destinations.h"
#include "transport/memory/device_ranges.h"

namespace penstock {

std::shared_ptr<Destinations> Destinations::Make(
    const std::vector<Range>& ranges, std::shared_ptr<const void> owner,
    Use use) {
  return Make(ranges, std::move(owner), use, Slices::kHost);
}

std::shared_ptr<Destinations> Destinations::Make(
    const std::vector<Range>& ranges, std::shared_ptr<const void> owner,
    Use use, Slices slices) {
  std::vector<memory::Destination> all;
  for (const Range& range : ranges) {
    memory::DeviceAccess* device = nullptr;
    if (range.kind == Kind::kDevice) {
      device = memory::DevicesOfProcess();
      if (device == nullptr) continue;  // no device could write there
    }
    all.push_back({static_cast<uint8_t*>(range.data), range.size, device});
  }
  const auto registered =
      use == Use::kOften ? memory::Destinations::Registered::kForLife
                         : memory::Destinations::Registered::kForOneMessage;
  return absl::WrapUnique(
      new Destinations(std::make_shared<memory::Destinations>(
          std::move(all), std::move(owner), registered,
          slices == Slices::kAnywhere)));
}

Destinations::Destinations(std::shared_ptr<memory::Destinations> shared)
    : shared_(std::move(shared)) {}

Destinations::~Destinations() = default;

void Destinations::AttachTo(grpc::ClientContext* context) const {
  core::AttachDestinations(context, shared_);
}

bool Destinations::in_use() const { return shared_->is_taken(); }

}  // namespace penstock
