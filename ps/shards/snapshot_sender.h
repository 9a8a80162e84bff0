// Sends the values of a primary to a joiner.

#ifndef PENSTOCK_PS_SHARDS_SNAPSHOT_SENDER_H_
#define PENSTOCK_PS_SHARDS_SNAPSHOT_SENDER_H_

#include <functional>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/support/byte_buffer.h"
#include "ps/replication/messages.h"
#include "ps/server/cancellation.h"
#include "ps/server/server.h"
#include "ps/shards/replica_state.h"
#include "ps/shards/wire.h"

namespace penstock::ps {

// A thread that sends one snapshot at a time: the values at a cut, the members
// at the cut, and the position of the cut in the log.
//
// Thread-safe.
class SnapshotSender final
    : public std::enable_shared_from_this<SnapshotSender> {
 public:
  explicit SnapshotSender(std::shared_ptr<ReplicaState> state);

  // Adds to `due` the work that sends a snapshot, if a joiner needs one.
  void Collect(absl::Time now, ReplicaState::Due* due);
  // Ends the snapshot in progress.
  void Cancel();

 private:
  // The position of a snapshot in the log, and the members at that position.
  struct Place {
    replication::Snapshot message;
    MembersImage members;
  };

  void Send(const replication::ReplicaId& to);
  absl::Status TrySend(const replication::ReplicaId& to,
                       const std::shared_ptr<Server>& server);
  // Blocks until the server has reached a cut, and returns its values. No later
  // entry counts as applied until FindPlace().
  absl::StatusOr<ModelSnapshot> TakeValues(
      const std::shared_ptr<Server>& server);
  absl::StatusOr<Place> FindPlace(const replication::ReplicaId& to,
                                  const Server& server, const CutState& cut);
  absl::Status SendPieces(const replication::ReplicaId& to,
                          const replication::Snapshot& message,
                          const Server::Training& training,
                          ModelSnapshot snapshot, SnapshotState* state);
  // A function that makes a request for the present view, from the renewed
  // message.
  using MakeRequest = std::function<absl::StatusOr<grpc::ByteBuffer>(
      const replication::Snapshot& message)>;
  // Calls a peer, and blocks until the answer. Repeats the call while both
  // servers have different views. Returns the error of the request or of the
  // answer.
  absl::StatusOr<replication::Answer> Call(const replication::ReplicaId& to,
                                           const replication::Snapshot& message,
                                           const MakeRequest& make,
                                           absl::Duration timeout);
  absl::StatusOr<replication::Answer> CallOnce(
      const replication::ReplicaId& to, const replication::Snapshot& message,
      const grpc::ByteBuffer& request, absl::Duration timeout);
  // Returns the message for the present view, or the reason why the snapshot is
  // no longer needed.
  absl::StatusOr<replication::Snapshot> Renew(
      const replication::ReplicaId& to, const replication::Snapshot& message);

  const std::shared_ptr<ReplicaState> state_;
  bool is_sending_ ABSL_GUARDED_BY(state_->mu) = false;
  replication::ReplicaId last_ ABSL_GUARDED_BY(state_->mu);  // receiver
  absl::Time retry_ ABSL_GUARDED_BY(state_->mu) = absl::InfinitePast();
  std::shared_ptr<Cancellation> cancellation_ ABSL_GUARDED_BY(state_->mu);
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SHARDS_SNAPSHOT_SENDER_H_
