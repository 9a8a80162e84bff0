// A size that follows an estimate by steps, and does not oscillate.

#ifndef PENSTOCK_TRANSPORT_PROTOCOL_STEPPED_SIZE_H_
#define PENSTOCK_TRANSPORT_PROTOCOL_STEPPED_SIZE_H_

#include <cstddef>

namespace penstock {
namespace protocol {

// Where a size begins and how far it may go; one that is fixed may go nowhere.
struct SizeBounds {
  size_t start = 0;
  size_t least = 0;  // not above start
  size_t most = 0;   // not below start
};

// The start times a power of two, within the bounds. A step, by one power, is
// made when several estimates in a row were beyond the present size by more
// than kMargin. Margins above half a step overlap, so an estimate that has just
// caused a step lies well within the margins of the new size: to be taken back,
// it has to move by the overlap, and stay there.
class SteppedSize {
 public:
  // 0.75 of a step, which overlap by half a step: 2^0.75.
  static constexpr double kMargin = 1.68;
  static constexpr int kInARow = 8;

  explicit SteppedSize(const SizeBounds& bounds)
      : bounds_(bounds), value_(bounds.start) {}

  size_t value() const { return value_; }
  bool is_fixed() const { return bounds_.least == bounds_.most; }
  // One estimate of what would be best.
  void Propose(double wanted);

 private:
  void Step(int direction);
  size_t At(int steps) const;

  SizeBounds bounds_;
  size_t value_;
  int steps_ = 0;     // from the start
  int in_a_row_ = 0;  // proposals beyond the margin; negative: below it
};

}  // namespace protocol
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_PROTOCOL_STEPPED_SIZE_H_
