#include "transport/connection/path_backoff.h"

#include <algorithm>

namespace penstock {
namespace connection {

// Defines the constants, as C++14 requires.
constexpr absl::Duration PathBackoff::kFirst;
constexpr absl::Duration PathBackoff::kLongest;

void PathBackoff::OnPathChosen(bool is_best, absl::Time now) {
  if (is_best) {
    best_since_ = now;
    return;
  }
  if (now - best_since_ >= kLongest) next_ = kFirst;
  best_since_ = absl::InfiniteFuture();
}

absl::Duration PathBackoff::Next() {
  const absl::Duration pause = next_;
  next_ = std::min(next_ * 2, kLongest);
  return pause;
}

}  // namespace connection
}  // namespace penstock
