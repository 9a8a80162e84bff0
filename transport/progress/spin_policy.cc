#include "transport/progress/spin_policy.h"

#include <algorithm>

namespace penstock {
namespace progress {
namespace {

// The least step up, without which the time would stay at zero. Shorter times
// do not suffice for one poll, and count as zero.
constexpr int64_t kLeastNanos = 5 * 1000;

}  // namespace

constexpr int64_t SpinPolicy::kInitialNanos;
constexpr int64_t SpinPolicy::kMaxNanos;
constexpr int64_t SpinPolicy::kLostCoreNanos;
constexpr double SpinPolicy::kSoon;
constexpr int SpinPolicy::kRestFactor;

absl::Duration SpinPolicy::Budget(absl::Time now) const {
  switch (mode_) {
    case PollingMode::kBusy:
      return absl::InfiniteDuration();
    case PollingMode::kEvent:
      return absl::ZeroDuration();
    case PollingMode::kAdaptive:
      break;
  }
  if (absl::ToUnixNanos(now) < rests_until_.load(std::memory_order_relaxed)) {
    return absl::ZeroDuration();
  }
  return absl::Nanoseconds(nanos_.load(std::memory_order_relaxed));
}

void SpinPolicy::RecordYield(absl::Duration took, absl::Time now) {
  if (took < absl::Nanoseconds(kLostCoreNanos)) return;
  const int64_t nanos = absl::ToUnixNanos(now);
  // No neighbour has so long a slice: the process or its machine was stopped.
  if (took > absl::Nanoseconds(kMaxSliceNanos)) {
    had_core_since_.store(nanos, std::memory_order_relaxed);
    return;
  }
  const int64_t lost = absl::ToInt64Nanoseconds(took);
  const int64_t had =
      nanos - lost - had_core_since_.exchange(nanos, std::memory_order_relaxed);
  if (static_cast<double>(had) < kSoon * static_cast<double>(lost)) {
    rests_until_.store(nanos + kRestFactor * lost, std::memory_order_relaxed);
  }
}

void SpinPolicy::Record(bool found, absl::Duration waited) {
  const int64_t now = nanos_.load(std::memory_order_relaxed);
  int64_t next;
  if (found && waited <= absl::Nanoseconds(now)) {
    next = now + now / 8;  // success: leave some room for slower events
  } else if (found && waited <= absl::Nanoseconds(kMaxNanos)) {
    next = 2 * now + kLeastNanos;  // spinning a little longer would have helped
  } else {
    next = now - now / 4;
    if (next < kLeastNanos) next = 0;
  }
  nanos_.store(std::min(next, kMaxNanos), std::memory_order_relaxed);
}

}  // namespace progress
}  // namespace penstock
