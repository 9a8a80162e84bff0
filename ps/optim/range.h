// Checks that a user's numbers are in range.

#ifndef PENSTOCK_PS_OPTIM_RANGE_H_
#define PENSTOCK_PS_OPTIM_RANGE_H_

#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace penstock::ps::optim {

// The bounds of a positive setting. A setting is an f64. Within these bounds,
// its conversion to f32 is neither 0 nor infinite.
inline constexpr double kSmallestF32 = std::numeric_limits<float>::min();
inline constexpr double kLargestF32 = std::numeric_limits<float>::max();

// Returns OK if low <= value <= high. Otherwise, also for NaN, returns
// INVALID_ARGUMENT, which names `field`.
inline absl::Status CheckRange(absl::string_view field, double value,
                               double low, double high) {
  if (value >= low && value <= high) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, " is ", value, ", not from ", low, " to ", high));
}

// Returns OK if low <= value < end. Otherwise returns INVALID_ARGUMENT, which
// names `field`.
inline absl::Status CheckBelow(absl::string_view field, double value,
                               double low, double end) {
  if (value >= low && value < end) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      field, " is ", value, ", not at least ", low, " and below ", end));
}

}  // namespace penstock::ps::optim

#endif  // PENSTOCK_PS_OPTIM_RANGE_H_
