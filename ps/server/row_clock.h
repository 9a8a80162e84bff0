// The clock that dates the last use of each row.

#ifndef PENSTOCK_PS_SERVER_ROW_CLOCK_H_
#define PENSTOCK_PS_SERVER_ROW_CLOCK_H_

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "transport/base/steady_time.h"

namespace penstock::ps {

// A clock that starts at the system's time and is monotonic from then on.
// Processes can compare times of this clock. Checkpoints store the times with
// rows. Immutable.
class RowClock {
 public:
  RowClock() : epoch_(absl::Now() - (base::SteadyNow() - absl::UnixEpoch())) {}

  absl::Time Now() const {
    return epoch_ + (base::SteadyNow() - absl::UnixEpoch());
  }

 private:
  const absl::Time epoch_;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SERVER_ROW_CLOCK_H_
