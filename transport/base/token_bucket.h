// A limit on the rate of events.

#ifndef PENSTOCK_TRANSPORT_BASE_TOKEN_BUCKET_H_
#define PENSTOCK_TRANSPORT_BASE_TOKEN_BUCKET_H_

#include <algorithm>

#include "absl/time/time.h"

namespace penstock {
namespace base {

// Allows a burst of `burst` events, then one for each `pause`. Not thread-safe.
class TokenBucket {
 public:
  TokenBucket(int burst, absl::Duration pause)
      : pause_(pause), depth_(pause * burst) {}

  // Returns true if an event may happen now, and counts the event. Otherwise
  // returns false. `now` is SteadyNow().
  bool Take(absl::Time now) {
    // full_at_ is the time at which the bucket is full again. The bucket is
    // empty while full_at_ is at least depth_ in the future.
    const absl::Time full_at = std::max(full_at_, now) + pause_;
    if (full_at - now > depth_) return false;
    full_at_ = full_at;
    return true;
  }

 private:
  const absl::Duration pause_;
  const absl::Duration depth_;
  absl::Time full_at_ = absl::InfinitePast();
};

}  // namespace base
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_BASE_TOKEN_BUCKET_H_
