// Fences primaries, so that no two of them acknowledge at the same time.

#ifndef PENSTOCK_PS_REPLICATION_LEASE_H_
#define PENSTOCK_PS_REPLICATION_LEASE_H_

#include <cstdint>
#include <map>
#include <vector>

#include "absl/time/time.h"
#include "ps/replication/view.h"

namespace penstock::ps::replication {

// Replicas grant leases to their primary, so that neither pulls nor pushes wait
// for the owner of the views. A backup that answers a primary promises not to
// begin as a primary within `duration`. A primary acknowledges pushes only
// while each replica that may succeed it is bound by such a promise.
//
// The primary measures a lease from before its request, the backup from after
// it has received the request. The lease therefore ends before the promise, if
// the clocks agree well enough: while the primary's clock shows `duration` -
// `max_skew`, the backup's clock shows at most `duration`. Skew includes drift
// and jumps of both clocks. The clock must count the time for which a host
// sleeps (CLOCK_BOOTTIME).
//
// If the clocks differ more, a deposed primary may answer pulls with old
// values. Even then, no acknowledged push is lost: a backup refuses the entries
// of a view that it knows to be over.
struct LeaseTimes {
  absl::Duration duration = absl::Seconds(2);
  // Allows for two clocks that differ by 1 % in speed, and for jumps of 80 ms.
  absl::Duration max_skew = absl::Milliseconds(100);
};

// Limits the lease that a peer may request. For this time, a backup may be
// unable to replace a dead primary.
inline constexpr absl::Duration kMaxLease = absl::Minutes(1);

// The time at which a primary asked for a lease, by its own clock. Peers send
// the time back.
struct LeaseStamp {
  absl::Time sent = absl::InfinitePast();
  uint64_t era = 0;  // how often the clock has gone back
};

// The leases of a primary, one from each replica that may follow it.
//
// Pure: the caller passes the time, by the clock of this process.
class Lease {
 public:
  explicit Lease(const LeaseTimes& times) : times_(times) {}

  // Returns the stamp for a request.
  LeaseStamp Ask(absl::Time now);
  // Takes an answer to the request with the stamp `asked`. Ignores a stamp from
  // before the clock went back, and a stamp of the future.
  void Grant(const ReplicaId& by, const LeaseStamp& asked, absl::Time now);
  // Returns true if each of `replicas` has granted a lease that has not ended.
  // Returns true for an empty list, because no replica can then become the
  // successor. All leases end if the clock has gone back.
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
  // Ends the promise to a primary that has learned of its successor.
  void Release(const ReplicaId& to) { until_.erase(to); }
  // Returns true if no promise binds this replica. If the clock has gone back,
  // a promise seems to last longer than promised; such a promise is restarted.
  bool AreOver(absl::Time now);
  // Returns when AreOver() may become true.
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
