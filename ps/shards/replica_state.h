// The role, the log and the server of one replica, which all parts of the
// replica share.

#ifndef PENSTOCK_PS_SHARDS_REPLICA_STATE_H_
#define PENSTOCK_PS_SHARDS_REPLICA_STATE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "ps/replication/messages.h"
#include "ps/replication/replica.h"
#include "ps/server/server.h"
#include "ps/shards/entering_pushes.h"
#include "ps/shards/fed_entries.h"
#include "ps/shards/log_gate.h"
#include "ps/shards/logged_calls.h"
#include "ps/shards/shard_options.h"
#include "ps/shards/tickets.h"
#include "ps/shards/worker_leases.h"
#include "transport/base/steady_mutex.h"

namespace penstock::ps {

class Rounds;

// The role, the log and the Server of one replica, with the lock that all parts
// of the replica share. A part that changes the state calls Pump() or Work().
// Rounds then collects the work of all parts.
//
// Shard::Stop() waits for tracked work, which runs without the lock. To track
// work, add 1 to `tracked` when the work begins, and call EndTracked() when it
// ends.
struct ReplicaState {
  using Due = std::vector<std::function<void()>>;

  ReplicaState(const ShardOptions& options, const replication::Group& group,
               const replication::ReplicaId& self,
               std::shared_ptr<Server> first, bool leads);

  // Returns the primary, or null if this replica is not the primary or is
  // stopped.
  replication::Primary* primary() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    return is_stopped ? nullptr : replica.primary();
  }
  // Returns the error for calls at a replica that is not the primary. The error
  // names the server that is.
  absl::Status NotPrimary() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // Returns true if the training of this server has failed and a backup can
  // take over.
  bool LeavesToBackup() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // Checks that a message comes from the primary of this replica's view.
  absl::Status CheckFromPrimary(const replication::Envelope& envelope) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // Returns an answer with only a status.
  replication::Answer PlainAnswer(absl::Status status) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // Waits until no entry is being fed. No entry is fed while the caller holds
  // `mu`. Returns false after a timeout.
  bool AwaitIdle() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // Marks as applied the entries whose pushes are below the clocks.
  void Advance(const std::vector<RankClock>& clocks)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);

  // Requests a round of work: from the Shard's thread, or from the thread that
  // is doing rounds now.
  void Pump() ABSL_LOCKS_EXCLUDED(mu);
  // Like Pump(), but does the work on the caller's thread, unless another
  // thread is doing rounds. Call where waking a thread would delay the answer
  // to a worker.
  void Work() ABSL_LOCKS_EXCLUDED(mu);
  void EndTracked() ABSL_LOCKS_EXCLUDED(mu);
  void Say(const std::string& line) const;

  const ShardOptions options;
  const replication::Group group;
  const replication::ReplicaId self;
  // Owned by the Shard. Set before the replica gets its first view.
  std::weak_ptr<Rounds> rounds;

  base::SteadyMutex mu;
  replication::Replica replica ABSL_GUARDED_BY(mu);
  replication::View view ABSL_GUARDED_BY(mu);
  std::shared_ptr<Server> server ABSL_GUARDED_BY(mu);
  View training_view ABSL_GUARDED_BY(mu);  // the training of `server`
  FedEntries fed ABSL_GUARDED_BY(mu);
  // The number of callers of AwaitIdle().
  int wants_idle ABSL_GUARDED_BY(mu) = 0;
  // The error with which the server's training has failed; OK while it runs.
  absl::Status failure ABSL_GUARDED_BY(mu);
  bool is_stopped ABSL_GUARDED_BY(mu) = false;
  // `wants_pump` is true if a round of work is requested. The second flag is
  // true if only the Shard's thread may do that round, because its work blocks.
  bool wants_pump ABSL_GUARDED_BY(mu) = false;
  bool wants_thread ABSL_GUARDED_BY(mu) = false;
  // True while a thread does rounds.
  bool is_at_work ABSL_GUARDED_BY(mu) = false;
  int tracked ABSL_GUARDED_BY(mu) = 0;

  // The members below are used at the primary. `reign` increases when the role
  // changes.
  uint64_t reign ABSL_GUARDED_BY(mu) = 0;
  // The number of the last entry that earlier primaries have logged.
  uint64_t inherited ABSL_GUARDED_BY(mu) = 0;
  Tickets tickets ABSL_GUARDED_BY(mu);
  EnteringPushes entering ABSL_GUARDED_BY(mu);
  LoggedCalls logged ABSL_GUARDED_BY(mu);
  LogGate gate ABSL_GUARDED_BY(mu);
  WorkerLeases leases ABSL_GUARDED_BY(mu);
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SHARDS_REPLICA_STATE_H_
