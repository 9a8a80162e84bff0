// Receives the snapshot that a primary sends to this replica.

#ifndef PENSTOCK_PS_SHARDS_SNAPSHOT_RECEIVER_H_
#define PENSTOCK_PS_SHARDS_SNAPSHOT_RECEIVER_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ps/replication/view.h"
#include "ps/server/server.h"
#include "ps/shards/replica_state.h"
#include "ps/shards/wire.h"
#include "tensor_service/tensor.h"

namespace penstock::ps {

// Collects the pieces of a snapshot in memory, and restores them into a new
// Server, which replaces the replica's Server.
//
// Thread-safe. Keep it in a shared_ptr.
class SnapshotReceiver final
    : public std::enable_shared_from_this<SnapshotReceiver> {
 public:
  using AnswerCallback =
      std::function<void(absl::StatusOr<replication::Answer>)>;

  explicit SnapshotReceiver(std::shared_ptr<ReplicaState> state);

  // Handle the three messages of a snapshot, in this order. StartRestore()
  // calls back once the values are restored.
  absl::StatusOr<replication::Answer> TakePiece(
      const ReplicateMessage& message);
  void StartRestore(ReplicateMessage message, AnswerCallback callback);
  absl::StatusOr<replication::Answer> TakeSnapshot(
      const ReplicateMessage& message);
  // Drops the received pieces, unless their sender is still the primary in
  // `view` and this replica is still a joiner.
  void OnView(const replication::View& view);

 private:
  struct Incoming {
    uint64_t id = 0;
    replication::ReplicaId from;
    uint64_t bytes = 0;
    std::deque<tensor::Tensor> pieces;
    std::shared_ptr<Server> restored;
  };

  absl::Status CheckRestoreLocked(const ReplicateMessage& message) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_->mu);
  replication::Answer Restore(const std::deque<tensor::Tensor>& pieces,
                              const SnapshotState& snapshot);
  void ReplaceServerLocked(uint64_t seq, std::shared_ptr<Server>* restored)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_->mu);

  const std::shared_ptr<ReplicaState> state_;
  Incoming incoming_ ABSL_GUARDED_BY(state_->mu);
  // True while a thread restores a snapshot, even if its sender is no longer
  // the primary.
  bool is_restoring_ ABSL_GUARDED_BY(state_->mu) = false;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SHARDS_SNAPSHOT_RECEIVER_H_
