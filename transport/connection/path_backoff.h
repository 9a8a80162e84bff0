// The backoff between attempts at a better path. Pure: the caller brings the
// time.

#ifndef PENSTOCK_TRANSPORT_CONNECTION_PATH_BACKOFF_H_
#define PENSTOCK_TRANSPORT_CONNECTION_PATH_BACKOFF_H_

#include "absl/time/time.h"

namespace penstock {
namespace connection {

// Doubles the pause from a second to a minute. Most losses are over soon. An
// attempt costs both sides some work, and a loss costs the time until it is
// noticed. Starts anew after a path has held as long as the longest pause.
class PathBackoff {
 public:
  static constexpr absl::Duration kFirst = absl::Seconds(1);
  static constexpr absl::Duration kLongest = absl::Seconds(60);

  // Call when the session has chosen a path, the best one or another.
  void OnPathChosen(bool is_best, absl::Time now);
  // Returns the pause before the next attempt. Each call counts as an attempt.
  absl::Duration Next();

 private:
  absl::Duration next_ = kFirst;
  absl::Time best_since_ = absl::InfiniteFuture();
};

}  // namespace connection
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_CONNECTION_PATH_BACKOFF_H_
