#include "transport/paths/half_open.h"

namespace penstock {
namespace paths {

HalfOpen* HalfOpen::Get() {
  static auto* const half_open = new HalfOpen(4096);
  return half_open;
}

HalfOpen::Place HalfOpen::Enter() {
  if (count_.fetch_add(1) >= limit_) {
    count_.fetch_sub(1);
    return nullptr;
  }
  return Place(this, [](void* self) {
    static_cast<HalfOpen*>(self)->count_.fetch_sub(1);
  });
}

}  // namespace paths
}  // namespace penstock
