// Does the work of a replica's parts.

#ifndef PENSTOCK_PS_SHARDS_ROUNDS_H_
#define PENSTOCK_PS_SHARDS_ROUNDS_H_

#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "ps/shards/feeder.h"
#include "ps/shards/log_sender.h"
#include "ps/shards/replica_state.h"
#include "ps/shards/snapshot_sender.h"
#include "ps/shards/worker_calls.h"

namespace penstock::ps {

// The rounds of work of a replica. A round collects the work of all parts that
// has become possible, and does this work without the lock. One thread at a
// time is at work. If more work is wanted meanwhile, that thread does another
// round.
//
// A thread that has news, such as a push or the answer of a backup, does the
// rounds itself by Help(). An acknowledged push thus wakes no other thread of
// the process. The Shard's thread does the rounds that nobody helps with, and
// those that wait.
//
// Thread-safe. Keep it in a shared_ptr.
class Rounds {
 public:
  // The interval at which leases and applied entries are checked. A fraction of
  // the shortest useful lease.
  static constexpr absl::Duration kTick = absl::Milliseconds(20);

  Rounds(std::shared_ptr<ReplicaState> state,
         std::shared_ptr<WorkerCalls> calls,
         std::shared_ptr<LogSender> log_sender, std::shared_ptr<Feeder> feeder,
         std::shared_ptr<SnapshotSender> snapshot_sender);

  // Does a round, and those that are wanted meanwhile. Leaves them to the
  // thread that is at work if there is one. Waits for no step, except for up to
  // 1 s if a push is due that was repeated and whose step is not applied.
  // Leaves further work to the Shard's thread after kMaxHelp rounds, since the
  // caller is needed to receive messages.
  void Help() ABSL_LOCKS_EXCLUDED(state_->mu);
  // Waits for work, at most for a tick, and does one round. Only the Shard's
  // thread calls this function. Returns false once the replica is stopped.
  bool AwaitOne() ABSL_LOCKS_EXCLUDED(state_->mu);

 private:
  static constexpr int kMaxHelp = 8;

  // Begins the first round. Returns false if another thread does it: the one
  // that is at work, or the Shard's thread for work that waits.
  bool BeginHelp() ABSL_LOCKS_EXCLUDED(state_->mu);
  // Begins the next round if one is wanted. Otherwise returns false, and this
  // thread is no longer at work. Never lets the Shard's thread see work that
  // this thread takes, because that would wake the Shard's thread.
  bool GoOnHelping(int rounds) ABSL_LOCKS_EXCLUDED(state_->mu);
  void DoOne(Feeder::Wait wait);

  const std::shared_ptr<ReplicaState> state_;
  const std::shared_ptr<WorkerCalls> calls_;
  const std::shared_ptr<LogSender> log_sender_;
  const std::shared_ptr<Feeder> feeder_;
  const std::shared_ptr<SnapshotSender> snapshot_sender_;
  absl::Time tick_;  // the next one; used by the thread that is at work
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SHARDS_ROUNDS_H_
