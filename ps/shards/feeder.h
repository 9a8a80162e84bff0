// Feeds the entries of a replica's log to its server.

#ifndef PENSTOCK_PS_SHARDS_FEEDER_H_
#define PENSTOCK_PS_SHARDS_FEEDER_H_

#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "ps/replication/log.h"
#include "ps/shards/replica_state.h"
#include "ps/shards/worker_calls.h"

namespace penstock::ps {

// A feeder of committed entries to the Server of a replica, one at a time in
// the order of the log. The Servers of all replicas thus receive the same
// calls. Feeds an entry only while no synchronous step is being applied, so
// that all replicas judge the entry by the same version. Passes the Server's
// verdicts to the calls of the workers.
//
// Thread-safe.
class Feeder final : public std::enable_shared_from_this<Feeder> {
 public:
  Feeder(std::shared_ptr<ReplicaState> state,
         std::shared_ptr<WorkerCalls> calls);

  // The treatment of an entry that waits for a step: wait for a short time, or
  // leave the entry to the Shard's thread.
  enum class Wait { kWait, kLeaveToThread };
  // Adds to `due` the work that feeds the next entry, if there is one.
  void Collect(absl::Time now, Wait wait, ReplicaState::Due* due);
  // Requests from the server the entries that it has applied.
  void PollApplied();

 private:
  void Feed(const replication::EntryPtr& entry,
            const std::shared_ptr<Server>& server, Wait wait);
  void FeedPush(const replication::EntryPtr& entry,
                const std::shared_ptr<Exchange>& exchange);
  void FeedEvent(const replication::EntryPtr& entry, Server* server);
  void OnPushFed(const replication::EntryPtr& entry,
                 const absl::StatusOr<Exchange::PushVerdict>& verdict);
  void OnJoinFed(const replication::EntryPtr& entry,
                 absl::StatusOr<Exchange::Joined> joined);
  // Records that the server has accepted or refused an entry. A counted push is
  // applied later, when the values contain it; other entries are applied
  // immediately.
  void EndLocked(const replication::Entry& entry, bool has_counted)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_->mu);
  FedEntries::MembersNow MembersLocked()
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_->mu);
  View training_view();

  const std::shared_ptr<ReplicaState> state_;
  const std::shared_ptr<WorkerCalls> calls_;
  absl::Time retry_ ABSL_GUARDED_BY(state_->mu) = absl::InfinitePast();
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SHARDS_FEEDER_H_
