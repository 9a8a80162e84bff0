#include "transport/progress/spin_policy.h"

#include <algorithm>

namespace penstock {
namespace progress {
namespace {

// The smallest step up, without which the time would stay at zero. Shorter
// times do not suffice for one poll, and count as zero.
constexpr int64_t kLeastNanos = 5 * 1000;

}  // namespace

constexpr int64_t SpinPolicy::kInitialNanos;
constexpr int64_t SpinPolicy::kMaxNanos;
constexpr int64_t SpinPolicy::kLostCoreNanos;
constexpr double SpinPolicy::kSoon;
constexpr int SpinPolicy::kRestFactor;
constexpr int SpinPolicy::kLongRestFactor;
constexpr int64_t SpinPolicy::kMaxRestNanos;

absl::Duration CoreLosses::Record(absl::Duration took, absl::Time now) {
  if (took < absl::Nanoseconds(SpinPolicy::kLostCoreNanos)) {
    return absl::ZeroDuration();
  }
  const int64_t back = absl::ToUnixNanos(now);
  const int64_t lost = absl::ToInt64Nanoseconds(took);
  const int64_t had = back - lost - had_core_since_;
  had_core_since_ = back;
  // A loss that is longer than any time slice means that the process or its
  // machine was stopped.
  const bool stopped = lost > SpinPolicy::kMaxSliceNanos;
  const bool soon =
      static_cast<double>(had) < SpinPolicy::kSoon * static_cast<double>(lost);
  return soon && !stopped ? took : absl::ZeroDuration();
}

absl::Duration SpinPolicy::Budget(absl::Time now) const {
  switch (mode_) {
    case PollingMode::kBusy:
      return absl::InfiniteDuration();
    case PollingMode::kEvent:
      return absl::ZeroDuration();
    case PollingMode::kAdaptive:
      break;
  }
  if (Rests(now)) return absl::ZeroDuration();
  return absl::Nanoseconds(nanos_.load(std::memory_order_relaxed));
}

bool SpinPolicy::Rests(absl::Time now) const {
  return absl::ToUnixNanos(now) < rests_until_.load(std::memory_order_relaxed);
}

void SpinPolicy::RecordYield(absl::Duration took, absl::Time now,
                             CoreLosses* losses) {
  const absl::Duration lost = losses->Record(took, now);
  if (lost == absl::ZeroDuration()) return;
  rests_until_.store(absl::ToUnixNanos(now + kRestFactor * lost),
                     std::memory_order_relaxed);
}

void SpinPolicy::RecordCostlyYield(absl::Duration took, absl::Time now) {
  const int64_t lost = absl::ToInt64Nanoseconds(took);
  if (lost < kLostCoreNanos || lost > kMaxSliceNanos) return;
  const int64_t at = absl::ToUnixNanos(now);
  int64_t rest = rest_nanos_.load(std::memory_order_relaxed);
  const bool soon = at - rests_until_.load(std::memory_order_relaxed) < rest;
  rest = std::min(soon ? 2 * rest : kLongRestFactor * lost, kMaxRestNanos);
  rest_nanos_.store(rest, std::memory_order_relaxed);
  rests_until_.store(at + rest, std::memory_order_relaxed);
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
