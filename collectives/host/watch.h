// Determines why a rank does not reach a call, and ends the group.

#ifndef PENSTOCK_COLLECTIVES_HOST_WATCH_H_
#define PENSTOCK_COLLECTIVES_HOST_WATCH_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "collectives/fault.h"
#include "collectives/host/meeting.h"
#include "transport/base/mutex.h"

namespace penstock::collectives {

// The state of a group until its first error. All later calls return that
// error. Thread-safe.
class Watch {
 public:
  // The default limit of a process's silence, counted from the beginning of a
  // wait. A process without a heartbeat for this long counts as stopped, unless
  // its thread only waits for a core. Shorter than the promised two seconds.
  static constexpr absl::Duration kSilence = absl::Milliseconds(1500);
  // The limit of the silence while the process's thread waits for a disk,
  // unless `silence` is longer. The limit is long, because a process waits that
  // long on a machine that swaps.
  static constexpr absl::Duration kDiskSilence = absl::Seconds(15);

  // The last heartbeat of a rank, and the time at which this rank first saw it.
  struct Pulse {
    uint64_t heartbeat = 0;
    absl::Time since;
  };
  // One wait of one thread.
  struct Wait {
    // Returns true if `rank` has reached the call, or if this wait does not
    // need `rank`.
    std::function<bool(int rank)> came;
    absl::Time begun;
    int late = 0;               // all lower ranks have reached the call
    std::vector<Pulse> pulses;  // of each rank
    absl::Time last_look = absl::InfinitePast();
  };

  // `members` must outlive this object. `silence` limits the silence of a
  // process.
  Watch(const Members* members, absl::Duration timeout,
        absl::Duration silence = kSilence)
      : members_(members), timeout_(timeout), silence_(silence) {}

  // Returns the error that ended the group, or OK.
  absl::Status Ready();
  // Returns the error that ended the group at this rank or at a peer, or OK.
  // Ignores mismatches of calls that a peer has found.
  absl::Status Ended();
  // Checks all ranks. Returns the error of a rank that will never reach the
  // call, or OK.
  absl::Status Look(Wait* wait);
  // Ends the group, and tells the peers. Returns the error that ended the
  // group.
  absl::Status End(Fault fault, int culprit, const std::string& detail);
  // Ends the present and all later calls, on all ranks.
  void Abort();

 private:
  int own_rank() const { return members_->rank; }
  int ranks() const { return static_cast<int>(members_->peers.size()); }
  bool AllCame(const Wait& wait) const;

  // Returns the `failure` word of `rank`: the fault that this rank has
  // reported, or 0.
  uint32_t ReportOf(int rank) const;
  absl::Status EndAsReported(int rank, uint32_t failure);
  absl::Status LookForReports(Wait* wait);
  absl::Status LookForDeaths(Wait* wait);
  absl::Status LookForSilence(Wait* wait);
  // Returns true if a rank that has been silent for `silence` counts as
  // stopped.
  bool CountsAsStopped(int rank, absl::Duration silence) const;
  // Reports the fault to the peers, unless this rank has already reported
  // another fault.
  void Report(Fault fault, int culprit);

  const Members* const members_;
  const absl::Duration timeout_;
  const absl::Duration silence_;
  std::atomic<bool> aborted_{false};
  std::atomic<bool> has_ended_{false};
  base::Mutex mu_;
  absl::Status status_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock::collectives

#endif  // PENSTOCK_COLLECTIVES_HOST_WATCH_H_
