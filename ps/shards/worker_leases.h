// The leases of the workers of a shard.

#ifndef PENSTOCK_PS_SHARDS_WORKER_LEASES_H_
#define PENSTOCK_PS_SHARDS_WORKER_LEASES_H_

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "ps/consistency/membership.h"
#include "ps/server/model_snapshot.h"

namespace penstock::ps {

// Returns the time from the first look that finds a lease ended to the second
// look, which ends the membership. The lease may have ended while this process
// was stopped, and signs of life may wait in its sockets. The process reads
// them between the two looks.
inline absl::Duration SecondLookAfter(absl::Duration lease) {
  return lease / 8;
}

// The lease of each member, from its last sign of life, at the primary. A new
// primary first learns the members from its Server.
//
// Pure: the caller passes the time. Not thread-safe.
class WorkerLeases {
 public:
  // The run starts without the missing workers after `assemble_timeout`.
  WorkerLeases(absl::Duration lease, absl::Duration assemble_timeout)
      : lease_(lease), assemble_timeout_(assemble_timeout) {}

  // Forgets all members. Call it when another primary may have changed them.
  void Clear();
  bool knows_members() const { return knows_members_; }
  void Learn(const MembersImage& members, absl::Time now);
  // Records a sign of life of a worker that is, or becomes, a member.
  void Note(const WorkerId& worker, absl::Time now);
  // Records a sign of life, if the worker is a member.
  void Renew(const WorkerId& worker, absl::Time now);
  void Remove(const WorkerId& worker);
  // Returns the members whose leases have ended, at the second look: see
  // SecondLookAfter().
  std::vector<WorkerId> Silent(absl::Time now);

  bool StartIsDue(absl::Time now) const { return now >= start_at_; }
  void RecordStart() { start_at_ = absl::InfiniteFuture(); }

 private:
  struct Sign {
    absl::Time ends;
    bool is_overdue = false;
  };

  const absl::Duration lease_;
  const absl::Duration assemble_timeout_;
  std::map<std::pair<uint32_t, uint64_t>, Sign> alive_;
  bool knows_members_ = false;
  absl::Time start_at_ = absl::InfiniteFuture();
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SHARDS_WORKER_LEASES_H_
