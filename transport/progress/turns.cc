#include "transport/progress/turns.h"

namespace penstock {
namespace progress {

constexpr int64_t Turns::kIntervalNanos;
constexpr int64_t Turns::kTurnNanos;
constexpr int64_t Turns::kBoundNanos;
constexpr int64_t Turns::kNever;

bool Turns::Take(Source source, absl::Time now) {
  std::atomic<int64_t>& taken = taken_[static_cast<int>(source)];
  const int64_t at = absl::ToUnixNanos(now);
  int64_t last = taken.load(std::memory_order_relaxed);
  if (at - last < kIntervalNanos) return false;
  return taken.compare_exchange_strong(last, at, std::memory_order_relaxed);
}

void Turns::MakeDue(Source source) {
  taken_[static_cast<int>(source)].store(kNever, std::memory_order_relaxed);
}

}  // namespace progress
}  // namespace penstock
