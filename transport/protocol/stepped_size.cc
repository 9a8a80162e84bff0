#include "transport/protocol/stepped_size.h"

#include <algorithm>

namespace penstock {
namespace protocol {

constexpr double SteppedSize::kMargin;
constexpr int SteppedSize::kInARow;

void SteppedSize::Propose(double wanted) {
  if (wanted > value_ * kMargin) {
    in_a_row_ = std::max(in_a_row_, 0) + 1;
    if (in_a_row_ >= kInARow) Step(1);
  } else if (wanted * kMargin < value_) {
    in_a_row_ = std::min(in_a_row_, 0) - 1;
    if (in_a_row_ <= -kInARow) Step(-1);
  } else {
    in_a_row_ = 0;
  }
}

void SteppedSize::Step(int direction) {
  in_a_row_ = 0;
  const size_t next = At(steps_ + direction);
  if (next == value_) return;  // at a bound
  steps_ += direction;
  value_ = next;
}

size_t SteppedSize::At(int steps) const {
  const size_t size =
      steps >= 0 ? bounds_.start << steps : bounds_.start >> -steps;
  return std::min(std::max(size, bounds_.least), bounds_.most);
}

}  // namespace protocol
}  // namespace penstock
