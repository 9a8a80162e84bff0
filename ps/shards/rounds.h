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
// can run now, and runs it without the lock. One thread at a time does rounds.
// If more work is requested meanwhile, that thread does another round.
//
// A thread with an event, such as a push or the answer of a backup, does the
// rounds itself by Help(). An acknowledged push thus wakes no other thread of
// the process. The Shard's thread does the remaining rounds, and those that
// block.
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

  // Does a round, and the rounds that are requested meanwhile. If another
  // thread is doing rounds, leaves them to that thread. Does not wait for
  // steps, with one exception: waits up to 1 s if a repeated push is due whose
  // step is not applied. After kMaxHelp rounds, leaves further work to the
  // Shard's thread, because the caller is needed to receive messages.
  void Help() ABSL_LOCKS_EXCLUDED(state_->mu);
  // Waits up to a tick for work, and does one round. Only the Shard's thread
  // calls this function. Returns false once the replica is stopped.
  bool AwaitOne() ABSL_LOCKS_EXCLUDED(state_->mu);

 private:
  static constexpr int kMaxHelp = 8;

  // Begins the first round. Returns false if another thread does this round:
  // the one that is doing rounds, or the Shard's thread for work that blocks.
  bool BeginHelp() ABSL_LOCKS_EXCLUDED(state_->mu);
  // Begins the next round if one is requested. Otherwise returns false, and
  // this thread no longer does rounds. Takes the work before the Shard's thread
  // can see it, because the work would wake that thread.
  bool GoOnHelping(int rounds) ABSL_LOCKS_EXCLUDED(state_->mu);
  void DoOne(Feeder::Wait wait);

  const std::shared_ptr<ReplicaState> state_;
  const std::shared_ptr<WorkerCalls> calls_;
  const std::shared_ptr<LogSender> log_sender_;
  const std::shared_ptr<Feeder> feeder_;
  const std::shared_ptr<SnapshotSender> snapshot_sender_;
  absl::Time tick_;  // the next tick; used by the thread that does rounds
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SHARDS_ROUNDS_H_
