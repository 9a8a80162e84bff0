// A size that follows an estimate in steps and does not oscillate.

#ifndef PENSTOCK_TRANSPORT_PROTOCOL_STEPPED_SIZE_H_
#define PENSTOCK_TRANSPORT_PROTOCOL_STEPPED_SIZE_H_

#include <cstddef>

namespace penstock {
namespace protocol {

// The initial value and the limits of a size. The size is fixed if the limits
// are equal.
struct SizeBounds {
  size_t start = 0;
  size_t least = 0;  // not above start
  size_t most = 0;   // not below start
};

// A size that follows estimates in steps. The size is the initial value times a
// power of two, within the bounds. The size is doubled or halved when kInARow
// estimates in a row differ from it by more than the factor kMargin. A margin
// is wider than half a step, so the margins of neighbouring sizes overlap.
// After a step, the estimate is therefore well within the margins of the new
// size. The step is undone only if the estimate changes by the overlap, and
// stays there. Not thread-safe.
class SteppedSize {
 public:
  // The maximum ratio of size and estimate at which the size stays unchanged:
  // 2^0.75, or 0.75 of a step. The margins of neighbouring sizes overlap by
  // half a step.
  static constexpr double kMargin = 1.68;
  static constexpr int kInARow = 8;

  explicit SteppedSize(const SizeBounds& bounds)
      : bounds_(bounds), value_(bounds.start) {}

  size_t value() const { return value_; }
  bool is_fixed() const { return bounds_.least == bounds_.most; }
  // Handles one estimate of the best size, and steps if a step is due.
  void Propose(double wanted);

 private:
  void Step(int direction);
  size_t At(int steps) const;

  SizeBounds bounds_;
  size_t value_;
  int steps_ = 0;     // from the start
  int in_a_row_ = 0;  // estimates above the margins; negative: below them
};

}  // namespace protocol
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_PROTOCOL_STEPPED_SIZE_H_
