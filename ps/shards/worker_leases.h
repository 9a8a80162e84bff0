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

// The lease of each member of a shard, at the primary. A lease starts again
// with each sign of life. A new primary first reads the members from its
// Server.
//
// Pure: the caller passes RunningNow(), so that no lease ends because this
// process was stopped. Not thread-safe.
class WorkerLeases {
 public:
  // After `assemble_timeout`, the run starts without the missing workers.
  WorkerLeases(absl::Duration lease, absl::Duration assemble_timeout)
      : lease_(lease), assemble_timeout_(assemble_timeout) {}

  // Forgets all members. Call it when another primary may have changed them.
  void Clear();
  bool knows_members() const { return knows_members_; }
  void Learn(const MembersImage& members, absl::Time now);
  // Records a sign of life, and makes the worker a member.
  void Note(const WorkerId& worker, absl::Time now);
  // Records a sign of life, if the worker is already a member.
  void Renew(const WorkerId& worker, absl::Time now);
  void Remove(const WorkerId& worker);
  // Returns the members whose leases have expired.
  std::vector<WorkerId> Silent(absl::Time now) const;

  bool StartIsDue(absl::Time now) const { return now >= start_at_; }
  void RecordStart() { start_at_ = absl::InfiniteFuture(); }

 private:
  const absl::Duration lease_;
  const absl::Duration assemble_timeout_;
  // The end of each member's lease.
  std::map<std::pair<uint32_t, uint64_t>, absl::Time> alive_;
  bool knows_members_ = false;
  absl::Time start_at_ = absl::InfiniteFuture();
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SHARDS_WORKER_LEASES_H_
