#include "transport/protocol/line_fit.h"

#include <algorithm>
#include <cmath>

namespace penstock {
namespace protocol {
namespace {

// The factor by which each new point reduces older weights. The last 64 points
// then have two thirds of the weight. This averages out noise of a few tenths,
// and lets the line follow a changing link within a second of use.
constexpr double kKept = 1 - 1.0 / 64;
constexpr double kEnough = 8;
// The lower bound of the ratio of deviation to mean of x. If points are closer
// together, the fixed part is mostly noise.
constexpr double kMinSpread = 0.25;
constexpr double kOdd = 2;
// The number of consecutive outliers after which the fit forgets earlier
// points. While a thread does not run, four or eight points are delayed. This
// number covers several such delays in a row.
constexpr int kOddAreTheTruth = 32;
// The upper bound of the deviation from the line, relative to the mean of y.
// Twice the noise of points that are not outliers.
constexpr double kMaxDeviation = 0.5;

}  // namespace

void LineFit::Add(double x, double y) {
  if (is_cold_) {
    is_cold_ = false;
    return;
  }
  y = std::max(y, 0.0);
  if (!IsOdd(x, y)) {
    odd_ = 0;
  } else if (++odd_ < kOddAreTheTruth) {
    return;
  } else {
    *this = LineFit();
  }
  weight_ = weight_ * kKept + 1;
  sum_x_ = sum_x_ * kKept + x;
  sum_y_ = sum_y_ * kKept + y;
  sum_xx_ = sum_xx_ * kKept + x * x;
  sum_xy_ = sum_xy_ * kKept + x * y;
  sum_yy_ = sum_yy_ * kKept + y * y;
  if (++points_ >= kOddAreTheTruth && IsSpread() && !IsNearLine()) {
    *this = LineFit();
  }
}

bool LineFit::has_ratio() const { return weight_ >= kEnough; }

bool LineFit::has_line() const {
  return has_ratio() && IsSpread() && IsNearLine();
}

bool LineFit::IsSpread() const {
  return Variance() >= kMinSpread * kMinSpread * sum_x_ * sum_x_;
}

bool LineFit::IsNearLine() const {
  const double explained = slope() * Covariance();
  const double around_mean = weight_ * sum_yy_ - sum_y_ * sum_y_;
  return around_mean - explained <=
         kMaxDeviation * kMaxDeviation * sum_y_ * sum_y_;
}

double LineFit::slope() const {
  // Limits the slope. A negative fixed part is noise; the line then goes
  // through zero.
  const double slope = Covariance() / Variance();
  return std::min(std::max(slope, 0.0), ratio());
}

double LineFit::fixed() const { return (sum_y_ - slope() * sum_x_) / weight_; }

bool LineFit::IsOdd(double x, double y) const {
  if (!has_ratio()) return false;
  double expected = 0;
  if (has_line()) {
    expected = fixed() + slope() * x;
  } else if (std::abs(x - sum_x_ / weight_) <= kMinSpread * x) {
    expected = ratio() * x;
  } else {
    return false;  // there is no point of similar size to compare with
  }
  return y > kOdd * expected || y * kOdd < expected;
}

}  // namespace protocol
}  // namespace penstock
