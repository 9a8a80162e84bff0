// When a better path that was lost, or could not be had, is tried again. Pure:
// the caller brings the time.

#ifndef PENSTOCK_TRANSPORT_CONNECTION_PATH_BACKOFF_H_
#define PENSTOCK_TRANSPORT_CONNECTION_PATH_BACKOFF_H_

#include "absl/time/time.h"

namespace penstock {
namespace connection {

// Pauses double from a second to a minute: most losses are over soon, and an
// attempt costs both sides some work, and each loss the time until it is
// noticed. A path that has held as long as the longest pause begins anew.
class PathBackoff {
 public:
  static constexpr absl::Duration kFirst = absl::Seconds(1);
  static constexpr absl::Duration kLongest = absl::Seconds(60);

  // The session has chosen a path: the best one, or another.
  void OnPathChosen(bool is_best, absl::Time now);
  // The pause before the next attempt. Each call is an attempt.
  absl::Duration Next();

 private:
  absl::Duration next_ = kFirst;
  absl::Time best_since_ = absl::InfiniteFuture();
};

}  // namespace connection
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_CONNECTION_PATH_BACKOFF_H_
