// Sends chunks before the peer requests them.

#include <algorithm>

#include "transport/fabric/tcp/endpoint.h"

namespace penstock {
namespace fabric {
namespace tcp {

absl::StatusOr<Exposure> Endpoint::ExposeToPush(
    const memory::Payload& payload) {
  return Keep(next_key_++ | kPushed, payload);
}

void Endpoint::Push(const RemoteRegion& region) {
  if (broken_) return;
  to_push_.push_back(region[0].key);
  WriteQueued();
}

void Endpoint::ServePushes() {
  const size_t end = queue_.bytes() + kServedBytesPerWrite;
  for (; !to_push_.empty() && queue_.bytes() < end; to_push_.pop_front()) {
    const uint64_t key = to_push_.front();
    auto it = exposed_.find(key);
    if (it != exposed_.end()) {
      const auto size =
          static_cast<uint32_t>(std::min(it->second.size(), kChunkBytes));
      if (AddPart(UnitHeader{size, UnitType::kPush, key}, it->second, 0)) {
        continue;
      }
    }
    queue_.Add(UnitHeader{0, UnitType::kPushVoid, key}, {});
  }
}

}  // namespace tcp
}  // namespace fabric
}  // namespace penstock
