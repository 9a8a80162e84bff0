// The replicas of one process.

#ifndef PENSTOCK_PS_SHARDS_SHARDS_H_
#define PENSTOCK_PS_SHARDS_SHARDS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/optional.h"
#include "grpcpp/support/byte_buffer.h"
#include "ps/model/model.h"
#include "ps/replication/view_follower.h"
#include "ps/server/calls.h"
#include "ps/server/server.h"
#include "ps/shards/shard.h"

namespace penstock::ps {

// Returns the options of a Server whose calls come from a log. The results of
// such a Server do not depend on time: the leases of members never expire, and
// the Server waits for missing workers for ever. Shards itself measures the
// times in `options`.
Server::Options ForReplica(Server::Options options);

// Checks that all replicas of the model would have the same rows. Returns
// INVALID_ARGUMENT, with the table, if a server may drop rows of a table
// independently of other servers: by time to live, by max_rows, or by
// admission.
absl::Status CheckReplicable(const Model& model);

// The shards of a process, by the newest view that it knows. Finds the shard of
// a call. Before the first view, the process's own Server handles the calls
// that begin a training; pushes are refused.
//
// Thread-safe. Construct and destroy on one thread.
class Shards final : public replication::ViewFollower {
 public:
  // `own` has options from ForReplica(). `own` and the peers must outlive this
  // object.
  Shards(ShardOptions options, replication::ReplicaId self, Server* own);
  // Calls Stop().
  ~Shards() override;

  replication::ReplicaId self() const override { return self_; }
  absl::optional<uint64_t> run() const override;
  // Also returns UNAVAILABLE, in addition to the errors of ViewFollower, while
  // this process leads a shard of `view` but lacks the shard's first values.
  absl::Status OnView(const replication::View& view) override
      ABSL_LOCKS_EXCLUDED(mu_);
  std::vector<Request> Requests() override ABSL_LOCKS_EXCLUDED(mu_);

  // Returns the number of the process's own shard; nullopt before Define().
  absl::optional<uint32_t> own_shard() const;
  // Returns this process's replica of a shard, in any role, or null.
  std::shared_ptr<Shard> Find(uint32_t shard) const ABSL_LOCKS_EXCLUDED(mu_);
  // Returns the object that handles the calls for a shard; nullopt means the
  // process's own shard. Returns UNAVAILABLE, with kNotPrimary, if this process
  // has no replica of the shard. Get the object again for each call.
  absl::StatusOr<std::shared_ptr<Calls>> CallsOf(absl::optional<uint32_t> shard)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Returns the server with the values of a shard, if this process leads the
  // shard.
  absl::StatusOr<std::shared_ptr<Server>> ServerOf(
      absl::optional<uint32_t> shard) ABSL_LOCKS_EXCLUDED(mu_);
  // Returns the replica of a shard if this process leads the shard; nullopt
  // means the process's own shard. Otherwise, and before the first view,
  // returns UNAVAILABLE with kNotPrimary.
  absl::StatusOr<std::shared_ptr<Shard>> LeaderOf(
      absl::optional<uint32_t> shard) ABSL_LOCKS_EXCLUDED(mu_);
  // Returns OK if this process may define its own shard. Conditions: the
  // process leads the shard, no server has the shard any more, or the
  // definition replaces the run of the view. Otherwise returns UNAVAILABLE,
  // with kNotPrimary.
  absl::Status CheckMayDefine(uint64_t replaces) ABSL_LOCKS_EXCLUDED(mu_);

  // Returns true if the primary of shard 0 locks the folder of checkpoints.
  // Returns false if the server at which a chief defines the training does.
  // `replaces` belongs to that definition.
  bool HasFolder(uint64_t replaces) ABSL_LOCKS_EXCLUDED(mu_);

  // Handles Replicate() of a peer. `callback` gets the reply, on any thread.
  // Returns the replica that has handled the message, or null. The caller calls
  // Shard::Help() once the reply is sent.
  using ReplyCallback = std::function<void(absl::StatusOr<grpc::ByteBuffer>)>;
  std::shared_ptr<Shard> Replicate(const grpc::ByteBuffer& request,
                                   const ReplyCallback& callback)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Ends all waiting calls, and the shards' threads. Call before the gRPC
  // server is shut down.
  void Stop() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  class BeforeView;
  using ShardPtr = std::shared_ptr<Shard>;

  absl::Status CheckViewLocked(const replication::View& view) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Returns the shards that this process must stop.
  std::vector<ShardPtr> HoldLocked(const replication::View& view)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool HasOwnValuesLocked(uint64_t run, size_t shard) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Returns true if calls for a shard go to the process's own Server, because
  // there is no view yet, or the view belongs to another run.
  bool IsBeforeViewLocked(absl::optional<uint32_t> shard) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Returns the error for a shard of which this process has no replica:
  // DATA_LOSS if no process has one.
  absl::Status NotHereLocked(absl::optional<uint32_t> shard) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool IsLostLocked(absl::optional<uint32_t> shard) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::StatusOr<ShardPtr> HolderOf(const ReplicateMessage& message)
      ABSL_LOCKS_EXCLUDED(mu_);
  std::vector<ShardPtr> all() const ABSL_LOCKS_EXCLUDED(mu_);

  const ShardOptions options_;
  const replication::ReplicaId self_;
  Server* const own_;
  const std::shared_ptr<Calls> before_view_;

  mutable absl::Mutex mu_;
  replication::View view_ ABSL_GUARDED_BY(mu_);
  std::map<uint32_t, ShardPtr> shards_ ABSL_GUARDED_BY(mu_);
  bool is_stopped_ ABSL_GUARDED_BY(mu_) = false;
  // The threads that stop the shards of which this process no longer has
  // replicas. A stop may take long.
  std::vector<std::thread> stopping_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SHARDS_SHARDS_H_
