// Fences primaries: at most one of them acknowledges pushes at any time.

#ifndef PENSTOCK_PS_REPLICATION_LEASE_H_
#define PENSTOCK_PS_REPLICATION_LEASE_H_

#include <cstdint>
#include <map>
#include <vector>

#include "absl/time/time.h"
#include "ps/replication/view.h"

namespace penstock::ps::replication {

// Leases of replicas for their primary. With a lease, the primary answers pulls
// and pushes without asking the owner of the views. A backup that answers a
// primary promises not to act as a primary itself for `duration`. A primary
// acknowledges pushes only while each possible successor is bound by such a
// promise.
//
// The primary measures the lease from the time before it sends the request. The
// backup measures its promise from the time after it has received the request.
// The lease therefore ends before the promise, if the clocks agree well enough:
// while the primary's clock advances by `duration` - `max_skew`, the backup's
// clock advances by at most `duration`. Skew includes drift and jumps of both
// clocks. The clock must count the time for which a host sleeps
// (CLOCK_BOOTTIME).
//
// If the clocks differ more, a deposed primary may answer pulls with old
// values. Even then, no acknowledged push is lost, because a backup refuses
// entries of an earlier view.
struct LeaseTimes {
  absl::Duration duration = absl::Seconds(2);
  // Allows for two clocks that differ by 1 % in speed, and for jumps of 80 ms.
  absl::Duration max_skew = absl::Milliseconds(100);
};

// Limits the lease that a peer may request. A backup may be unable to replace a
// dead primary for this time.
inline constexpr absl::Duration kMaxLease = absl::Minutes(1);

// The time at which a primary asked for a lease, by the primary's clock. The
// receiver returns the stamp in its answer.
struct LeaseStamp {
  absl::Time sent = absl::InfinitePast();
  uint64_t era = 0;  // how many times the clock has gone back
};

// The leases of a primary, one from each replica that may follow it.
//
// Pure: the caller passes the time, by the clock of this process.
class Lease {
 public:
  explicit Lease(const LeaseTimes& times) : times_(times) {}

  // Returns the stamp for a request.
  LeaseStamp Ask(absl::Time now);
  // Handles an answer to the request with the stamp `asked`. Ignores a stamp
  // from before the clock went back, and a stamp from the future.
  void Grant(const ReplicaId& by, const LeaseStamp& asked, absl::Time now);
  // Returns true if each of `replicas` has granted a lease that has not ended.
  // Also returns true for an empty list: no other replica can become the
  // primary. All leases end if the clock has gone back.
  bool Covers(const std::vector<ReplicaId>& replicas, absl::Time now);

 private:
  void Look(absl::Time now);

  const LeaseTimes times_;
  std::map<ReplicaId, absl::Time> ends_;
  absl::Time last_look_ = absl::InfinitePast();
  uint64_t era_ = 0;
};

// The promises of a replica to the primaries that it has answered.
//
// Pure: the caller passes the time, by the clock of this process.
class Promises {
 public:
  void Give(const ReplicaId& to, absl::Duration duration, absl::Time now);
  // Ends the promise to a primary that knows that it was replaced.
  void Release(const ReplicaId& to) { until_.erase(to); }
  // Returns true if no promise binds this replica. If the clock has gone back,
  // a promise seems to last longer than promised. Such a promise starts again
  // with its full duration.
  bool AreOver(absl::Time now);
  // Returns the time from which AreOver() may be true.
  absl::Time until() const;

 private:
  struct Promise {
    absl::Time until;
    absl::Duration duration;
  };

  std::map<ReplicaId, Promise> until_;
};

}  // namespace penstock::ps::replication

#endif  // PENSTOCK_PS_REPLICATION_LEASE_H_
