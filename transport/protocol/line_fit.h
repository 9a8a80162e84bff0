// How a time depends on a size, from what was measured: y = fixed + slope x.

#ifndef PENSTOCK_TRANSPORT_PROTOCOL_LINE_FIT_H_
#define PENSTOCK_TRANSPORT_PROTOCOL_LINE_FIT_H_

namespace penstock {
namespace protocol {

// Least squares over points of which older ones count ever less. What is beyond
// twice or below half of what the line says is left out, as is the time in
// which a thread was not run; but many of these in a row are the truth, and the
// points before them are forgotten at once. So are points that do not make a
// line by and by, as those of two links do.
class LineFit {
 public:
  // Needs x > 0; y below zero counts as zero.
  void Add(double x, double y);

  // There are enough points for ratio().
  bool has_ratio() const;
  // And they are far enough apart for fixed() and slope(), and near a line.
  bool has_line() const;

  // Of y to x, as if nothing were fixed. Needs has_ratio().
  double ratio() const { return sum_y_ / sum_x_; }
  // Neither is negative. Need has_line().
  double slope() const;
  double fixed() const;

 private:
  bool IsOdd(double x, double y) const;
  bool IsSpread() const;
  bool IsNearLine() const;
  // Of x, and of x with y; times the square of the weight.
  double Variance() const { return weight_ * sum_xx_ - sum_x_ * sum_x_; }
  double Covariance() const { return weight_ * sum_xy_ - sum_x_ * sum_y_; }

  double weight_ = 0;
  double sum_x_ = 0;
  double sum_y_ = 0;
  double sum_xx_ = 0;
  double sum_xy_ = 0;
  double sum_yy_ = 0;
  int points_ = 0;
  int odd_ = 0;  // in a row
};

}  // namespace protocol
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_PROTOCOL_LINE_FIT_H_
