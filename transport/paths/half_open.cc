#include "transport/paths/half_open.h"

namespace penstock {
namespace paths {

HalfOpen* HalfOpen::Get() {
  static auto* const half_open = new HalfOpen(4096);
  return half_open;
}

HalfOpen::HalfOpen(int limit)
    : limit_(limit),
      shown_limit_(metrics::Metric::kHalfOpenLimit, {},
                   static_cast<uint64_t>(limit)),
      shown_(metrics::Metric::kHalfOpen, {}) {}

HalfOpen::Place HalfOpen::Enter() {
  if (count_.fetch_add(1) >= limit_) {
    count_.fetch_sub(1);
    return nullptr;
  }
  shown_.Add(1);
  return Place(this, [](void* place) {
    auto* const self = static_cast<HalfOpen*>(place);
    self->shown_.Subtract(1);
    self->count_.fetch_sub(1);
  });
}

}  // namespace paths
}  // namespace penstock
