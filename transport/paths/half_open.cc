#include "transport/paths/half_open.h"

#include <pthread.h>

namespace penstock {
namespace paths {
namespace {

constexpr int kLimit = 4096;

std::atomic<HalfOpen*> of_anybody{nullptr};
std::atomic<HalfOpen*> of_token_holders{nullptr};

// Forgets the parent's instances in a forked child, because the parent's
// negotiations would never end in the child.
void ForgetInChild() {
  of_anybody.store(nullptr);
  of_token_holders.store(nullptr);
}

// Registers before main(), for the reason in base::PerProcess.
const int registered = pthread_atfork(nullptr, nullptr, &ForgetInChild);

HalfOpen* GetOrMake(std::atomic<HalfOpen*>* shared) {
  HalfOpen* half_open = shared->load(std::memory_order_acquire);
  if (half_open != nullptr) return half_open;
  auto made = std::make_unique<HalfOpen>(kLimit);
  if (shared->compare_exchange_strong(half_open, made.get())) {
    return made.release();
  }
  return half_open;
}

}  // namespace

HalfOpen* HalfOpen::Get() { return GetOrMake(&of_anybody); }

HalfOpen* HalfOpen::OfTokenHolders() { return GetOrMake(&of_token_holders); }

HalfOpen::HalfOpen(int limit)
    : limit_(limit),
      shown_limit_(metrics::Metric::kHalfOpenLimit, {},
                   static_cast<uint64_t>(limit)),
      shown_(metrics::Metric::kHalfOpen, {}) {}

HalfOpen::Slot HalfOpen::Enter() {
  if (count_.fetch_add(1) >= limit_) {
    count_.fetch_sub(1);
    return nullptr;
  }
  shown_.Add(1);
  return Slot(this, [](void* place) {
    auto* const self = static_cast<HalfOpen*>(place);
    self->shown_.Subtract(1);
    self->count_.fetch_sub(1);
  });
}

}  // namespace paths
}  // namespace penstock
