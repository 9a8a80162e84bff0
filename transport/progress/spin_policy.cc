#include "transport/progress/spin_policy.h"

#include <algorithm>

namespace penstock {
namespace progress {
namespace {

// The smallest increase. Without it, the time would stay at zero. A shorter
// time does not suffice for one poll, and counts as zero.
constexpr int64_t kLeastNanos = 5 * 1000;

// Returns true if a yield of `took` has cost a time slice of another program.
bool IsTimeSlice(absl::Duration took) {
  return took >= absl::Nanoseconds(SpinPolicy::kLostCoreNanos) &&
         took <= absl::Nanoseconds(SpinPolicy::kMaxSliceNanos);
}

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
  const bool again = losses->Record(took, now) > absl::ZeroDuration();
  const bool soon = HasJustRested(now - took);
  if (again || (soon && IsTimeSlice(took))) {
    BeginRest(kRestFactor * took, soon, now);
  }
}

void SpinPolicy::RecordCostlyYield(absl::Duration took, absl::Time now) {
  if (!IsTimeSlice(took)) return;
  BeginRest(kLongRestFactor * took, HasJustRested(now), now);
}

bool SpinPolicy::HasJustRested(absl::Time now) const {
  const int64_t since =
      absl::ToUnixNanos(now) - rests_until_.load(std::memory_order_relaxed);
  return since < rest_nanos_.load(std::memory_order_relaxed);
}

void SpinPolicy::BeginRest(absl::Duration first, bool soon, absl::Time now) {
  const int64_t rest =
      std::min(soon ? 2 * rest_nanos_.load(std::memory_order_relaxed)
                    : absl::ToInt64Nanoseconds(first),
               kMaxRestNanos);
  rest_nanos_.store(rest, std::memory_order_relaxed);
  rests_until_.store(absl::ToUnixNanos(now) + rest, std::memory_order_relaxed);
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
