// Estimates how a time y depends on a size x: y = fixed + slope x.

#ifndef PENSTOCK_TRANSPORT_PROTOCOL_LINE_FIT_H_
#define PENSTOCK_TRANSPORT_PROTOCOL_LINE_FIT_H_

namespace penstock {
namespace protocol {

// Fits a line by least squares. The weight of a point decays as newer points
// arrive. Ignores an outlier, whose time is more than twice, or less than half,
// of the line's value; a thread that was not scheduled causes such outliers.
// Forgets all earlier points after many outliers in a row, because the times
// have changed. Also forgets points that are not near any line, for example
// because two different links produced them. Not thread-safe.
class LineFit {
 public:
  LineFit() = default;
  // Returns a fit that ignores its first point. With cold memory and caches,
  // that point may take ten times as long as the others.
  static LineFit BegunCold() {
    LineFit fit;
    fit.is_cold_ = true;
    return fit;
  }

  // Adds a point. Requires x > 0. A negative y counts as zero.
  void Add(double x, double y);

  // Returns true if there are enough points for ratio().
  bool has_ratio() const;
  // Returns true if the points also suffice for slope() and fixed(): they are
  // far enough apart, and near a line.
  bool has_line() const;

  // Returns y / x, as if the fixed part were zero. Requires has_ratio().
  double ratio() const { return sum_y_ / sum_x_; }
  // Return the slope, and the fixed part. Neither is negative. Require
  // has_line().
  double slope() const;
  double fixed() const;

 private:
  bool IsOdd(double x, double y) const;
  bool IsSpread() const;
  bool IsNearLine() const;
  // Return the variance of x, and the covariance of x and y, both times the
  // square of the weight.
  double Variance() const { return weight_ * sum_xx_ - sum_x_ * sum_x_; }
  double Covariance() const { return weight_ * sum_xy_ - sum_x_ * sum_y_; }

  double weight_ = 0;
  double sum_x_ = 0;
  double sum_y_ = 0;
  double sum_xx_ = 0;
  double sum_xy_ = 0;
  double sum_yy_ = 0;
  bool is_cold_ = false;
  int points_ = 0;
  int odd_ = 0;  // how many points in a row were left out
};

}  // namespace protocol
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_PROTOCOL_LINE_FIT_H_
