// The backoff between attempts at a better path. Does no I/O: the caller passes
// the time.

#ifndef PENSTOCK_TRANSPORT_CONNECTION_PATH_BACKOFF_H_
#define PENSTOCK_TRANSPORT_CONNECTION_PATH_BACKOFF_H_

#include "absl/time/time.h"

namespace penstock {
namespace connection {

// A backoff that doubles from kFirst to kLongest. The first pause is short,
// because most path losses are over soon. Later pauses are long: each attempt
// costs work on both sides, and calls wait until the loss of a bad path is
// detected. Restarts at kFirst after a path has lasted for kLongest.
class PathBackoff {
 public:
  static constexpr absl::Duration kFirst = absl::Seconds(1);
  static constexpr absl::Duration kLongest = absl::Seconds(60);

  // Records that the session has chosen a path. `is_best` is true for the best
  // path.
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
