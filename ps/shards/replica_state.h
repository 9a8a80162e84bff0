// The role, the log and the server of one replica, for all of its parts.

#ifndef PENSTOCK_PS_SHARDS_REPLICA_STATE_H_
#define PENSTOCK_PS_SHARDS_REPLICA_STATE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "ps/replication/messages.h"
#include "ps/replication/replica.h"
#include "ps/server/server.h"
#include "ps/shards/fed_entries.h"
#include "ps/shards/log_gate.h"
#include "ps/shards/logged_calls.h"
#include "ps/shards/shard_options.h"
#include "ps/shards/tickets.h"
#include "ps/shards/worker_leases.h"

namespace penstock::ps {

// The role, the log and the Server of one replica, and the lock of all its
// parts. A part that changes the state calls Pump(), so that the thread of the
// Shard looks at all parts again.
//
// Work without the lock that Shard::Stop() waits for is tracked: whoever begins
// it adds 1 to `tracked`, and its end calls EndTracked().
struct ReplicaState {
  using Due = std::vector<std::function<void()>>;

  ReplicaState(const ShardOptions& options, const replication::Group& group,
               const replication::ReplicaId& self,
               std::shared_ptr<Server> first, bool leads);

  // Returns the primary, or null if this replica is none or is stopped.
  replication::Primary* primary() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    return is_stopped ? nullptr : replica.primary();
  }
  // Returns the refusal of calls, with the server that leads the shard.
  absl::Status NotPrimary() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // Returns true if the server's training has failed, and a backup can follow.
  bool LeavesToBackup() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // Checks that a message comes from the primary of this replica's view.
  absl::Status CheckFromPrimary(const replication::Envelope& envelope) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // Returns an answer that says nothing about entries.
  replication::Answer PlainAnswer(absl::Status status) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // Waits until no entry is being fed, and keeps it so while the caller holds
  // `mu`. Returns false after a timeout.
  bool AwaitIdle() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // Records as applied the entries whose pushes are below the clocks.
  void Advance(const std::vector<RankClock>& clocks)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);

  void Pump() ABSL_LOCKS_EXCLUDED(mu);
  void EndTracked() ABSL_LOCKS_EXCLUDED(mu);
  void Say(const std::string& line) const;

  const ShardOptions options;
  const replication::Group group;
  const replication::ReplicaId self;

  absl::Mutex mu;
  replication::Replica replica ABSL_GUARDED_BY(mu);
  replication::View view ABSL_GUARDED_BY(mu);
  std::shared_ptr<Server> server ABSL_GUARDED_BY(mu);
  View training_view ABSL_GUARDED_BY(mu);  // of `server`
  FedEntries fed ABSL_GUARDED_BY(mu);
  int wants_idle ABSL_GUARDED_BY(mu) = 0;    // callers of AwaitIdle()
  absl::Status failure ABSL_GUARDED_BY(mu);  // of the server's training
  bool is_stopped ABSL_GUARDED_BY(mu) = false;
  bool wants_pump ABSL_GUARDED_BY(mu) = false;
  int tracked ABSL_GUARDED_BY(mu) = 0;

  // As the primary.
  uint64_t reign ABSL_GUARDED_BY(mu) = 0;      // rises when the role changes
  uint64_t inherited ABSL_GUARDED_BY(mu) = 0;  // entries of earlier primaries
  Tickets tickets ABSL_GUARDED_BY(mu);
  LoggedCalls logged ABSL_GUARDED_BY(mu);
  LogGate gate ABSL_GUARDED_BY(mu);
  WorkerLeases leases ABSL_GUARDED_BY(mu);
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SHARDS_REPLICA_STATE_H_
