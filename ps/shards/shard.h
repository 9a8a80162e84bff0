// One replica of a shard: its log, its server, and the calls of workers.

#ifndef PENSTOCK_PS_SHARDS_SHARD_H_
#define PENSTOCK_PS_SHARDS_SHARD_H_

#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "ps/replication/view.h"
#include "ps/replication/view_follower.h"
#include "ps/server/calls.h"
#include "ps/server/checkpoint_writer.h"
#include "ps/server/server.h"
#include "ps/shards/feeder.h"
#include "ps/shards/log_sender.h"
#include "ps/shards/replica_state.h"
#include "ps/shards/shard_cuts.h"
#include "ps/shards/shard_options.h"
#include "ps/shards/snapshot_receiver.h"
#include "ps/shards/snapshot_sender.h"
#include "ps/shards/wire.h"
#include "ps/shards/worker_calls.h"

namespace penstock::ps {

// A Server behind a replicated log. The primary checks each push, adds it to
// the log, and sends the log to the backups. Each replica feeds committed
// entries to its Server. The parts of a replica share a ReplicaState:
//
//   WorkerCalls       makes entries of calls, and answers the calls
//   LogSender         sends entries to the other replicas
//   Feeder            feeds committed entries to the Server
//   SnapshotSender    sends the values to joiners
//   SnapshotReceiver  receives them
//
// The log stores entries until they are applied.
//
// If a primary's training has failed and there is a backup, the primary stops
// feeding and answering. The backup then takes over.
//
// Thread-safe. Rounds runs the work of the parts, on a thread of the Shard and
// on threads that deliver events.
class Shard final : public std::enable_shared_from_this<Shard> {
 public:
  // Makes a replica of `group` for the server `self`. `first` has the first
  // values of the run. If `first` is null, the primary sends a snapshot.
  // `leads` is true if this replica is the primary of its first view. Use
  // std::make_shared(), because the thread holds a reference to the object.
  Shard(const ShardOptions& options, const replication::Group& group,
        const replication::ReplicaId& self,
        const std::shared_ptr<Server>& first, bool leads);
  // Calls Stop().
  ~Shard();

  // Changes to a view. Returns the error of Replica::OnView(). Does not block.
  absl::Status OnView(const replication::View& view);
  // Returns the primary's request for the next view; nullopt at other replicas.
  absl::optional<replication::ViewFollower::Request> Requests();
  // Handles a message of another server. Passes the answer to `callback`;
  // later, if the message restores values. The caller calls Help() once the
  // answer is sent. Without Help(), the committed entries are fed up to a tick
  // later.
  void Handle(ReplicateMessage message,
              SnapshotReceiver::AnswerCallback callback);
  // Feeds the entries that a message has committed.
  void Help() { state_->Work(); }

  // Returns the object that handles the calls of workers.
  std::shared_ptr<Calls> calls() const { return calls_; }
  // Returns the server if this replica is the primary. Otherwise returns the
  // error of NotPrimary().
  absl::StatusOr<std::shared_ptr<Server>> PrimaryServer();
  // Returns the server with this replica's values, in any role; may be null.
  std::shared_ptr<Server> server();
  const replication::Group& group() const { return state_->group; }

  // Returns the object that brings the shard to cuts. Lives as long as this
  // object.
  ShardCuts* cuts() const { return cuts_.get(); }
  // Returns the writer of the shard's checkpoints if this replica is the
  // primary. Otherwise returns the error of NotPrimary(). Returns null if there
  // is no folder. A new primary's writer begins with a full checkpoint. Does
  // not wait for the disk.
  absl::StatusOr<std::shared_ptr<CheckpointWriter>> Writer();

  // Refuses all calls, and waits for the end of work in progress. Call Stop()
  // of the peers first.
  void Stop();

 private:
  void StartThreadLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_->mu);
  void PumpLoop();
  void BeginReignLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_->mu);
  void EndReignLocked(ReplicaState::Due* due)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_->mu);
  void LockFolderLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_->mu);
  void ReleaseFolderLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_->mu);
  std::shared_ptr<CheckpointWriter> MakeWriterLocked()
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_->mu);
  absl::StatusOr<replication::Answer> TakeAppend(
      const ReplicateMessage& message);

  // The server that the process owns, which this object does not drain; may be
  // null.
  const Server* const own_;
  const std::shared_ptr<ReplicaState> state_;
  const std::shared_ptr<WorkerCalls> calls_;
  const std::shared_ptr<ShardCuts> cuts_;
  const std::shared_ptr<LogSender> log_sender_;
  const std::shared_ptr<Feeder> feeder_;
  const std::shared_ptr<SnapshotSender> snapshot_sender_;
  const std::shared_ptr<SnapshotReceiver> snapshot_receiver_;
  const std::shared_ptr<Rounds> rounds_;
  // True while the thread runs.
  bool is_pumping_ ABSL_GUARDED_BY(state_->mu) = false;
  // The checkpoint writer while this replica stays primary; null without a
  // folder.
  std::shared_ptr<CheckpointWriter> writer_ ABSL_GUARDED_BY(state_->mu);
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SHARDS_SHARD_H_
