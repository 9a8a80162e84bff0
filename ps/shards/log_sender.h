// Sends the log of a primary to the other replicas.

#ifndef PENSTOCK_PS_SHARDS_LOG_SENDER_H_
#define PENSTOCK_PS_SHARDS_LOG_SENDER_H_

#include <cstdint>
#include <map>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/support/byte_buffer.h"
#include "ps/replication/messages.h"
#include "ps/shards/replica_state.h"

namespace penstock::ps {

// A sender of entries and heartbeats. Sends one message at a time to each
// replica. Repeats messages that were refused or lost.
//
// Thread-safe.
class LogSender final : public std::enable_shared_from_this<LogSender> {
 public:
  explicit LogSender(std::shared_ptr<ReplicaState> state);

  // Adds to `due` the work that sends the messages that are due.
  void Collect(absl::Time now, ReplicaState::Due* due);

 private:
  struct Link {
    bool is_busy = false;
    // The time of the next heartbeat.
    absl::Time heartbeat = absl::InfinitePast();
    // The earliest time of the next message.
    absl::Time retry = absl::InfinitePast();
    // The last entry that was sent; the time at which a message without entries
    // must tell how far the log is committed.
    uint64_t sent = 0;
    absl::Time news = absl::InfinitePast();
    // True after the log has a line about another group of the replica.
    bool is_warned = false;
  };

  void Send(const replication::ReplicaId& to,
            const replication::Append& append);
  void OnReply(const replication::ReplicaId& to, uint64_t view,
               const absl::StatusOr<grpc::ByteBuffer>& reply);
  // Logs once that a replica is of another group. Such a replica never becomes
  // a backup.
  void WarnOfGroup(const replication::ReplicaId& from,
                   const replication::Group& theirs, Link* link)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_->mu);

  const std::shared_ptr<ReplicaState> state_;
  std::map<replication::ReplicaId, Link> links_ ABSL_GUARDED_BY(state_->mu);
  uint64_t view_ ABSL_GUARDED_BY(state_->mu) = 0;  // the view of links_
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SHARDS_LOG_SENDER_H_
