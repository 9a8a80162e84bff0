#include "transport/paths/short_lives.h"

namespace penstock {
namespace paths {

constexpr absl::Duration ShortLives::kShort;
constexpr size_t ShortLives::kMany;
constexpr absl::Duration ShortLives::kWindow;
constexpr int64_t ShortLives::kNever;

ShortLives* ShortLives::OfProcess() {
  static auto* const of_process = new ShortLives;
  return of_process;
}

void ShortLives::OnEnd(absl::Time begin, absl::Time end) {
  if (end - begin >= kShort) return;
  const size_t place = next_.fetch_add(1, std::memory_order_relaxed) % kMany;
  ends_[place].at.store(absl::ToUnixNanos(end), std::memory_order_relaxed);
}

bool ShortLives::AreFrequent(absl::Time now) const {
  const size_t oldest = next_.load(std::memory_order_relaxed) % kMany;
  const int64_t since = absl::ToUnixNanos(now - kWindow);
  return ends_[oldest].at.load(std::memory_order_relaxed) >= since;
}

}  // namespace paths
}  // namespace penstock
