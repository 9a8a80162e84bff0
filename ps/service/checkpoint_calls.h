// Runs the calls that wait for a disk on separate threads: calls of checkpoints
// and of restores.

#ifndef PENSTOCK_PS_SERVICE_CHECKPOINT_CALLS_H_
#define PENSTOCK_PS_SERVICE_CHECKPOINT_CALLS_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/optional.h"
#include "grpcpp/support/server_callback.h"
#include "ps/server/cancellation.h"
#include "ps/server/checkpoint_writer.h"
#include "ps/shards/shard_cuts.h"
#include "ps/wire/ps.pb.h"

namespace penstock::ps {

// A thread that runs the work of calls, one call after another. The thread
// starts with the first call. Thread-safe.
class CheckpointCalls {
 public:
  using Work = std::function<absl::Status(Cancellation*)>;

  CheckpointCalls() = default;
  // Joins the thread. All calls must have ended.
  ~CheckpointCalls();
  CheckpointCalls(const CheckpointCalls&) = delete;
  CheckpointCalls& operator=(const CheckpointCalls&) = delete;

  // Returns the reactor of a call, which runs `work`. The call ends with the
  // status of `work`. A call that is cancelled before its work begins ends with
  // CANCELLED, and its work is not run. The reactor deletes itself.
  grpc::ServerUnaryReactor* Start(Work work);
  // The work of a call that needs a CheckpointWriter. The writer may be null.
  using WriterWork =
      std::function<absl::Status(CheckpointWriter*, Cancellation*)>;
  grpc::ServerUnaryReactor* Start(std::shared_ptr<CheckpointWriter> writer,
                                  WriterWork work);

 private:
  class Call;

  void Enqueue(Call* call) ABSL_LOCKS_EXCLUDED(mu_);
  void ThreadLoop() ABSL_LOCKS_EXCLUDED(mu_);
  bool HasWorkLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return stop_ || !calls_.empty();
  }

  absl::Mutex mu_;
  std::deque<Call*> calls_ ABSL_GUARDED_BY(mu_);
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_ ABSL_GUARDED_BY(mu_);
};

// The threads of the shards that this process leads: one per shard, so that no
// shard waits for another shard's disk access. The steps of a shard are held
// only for some seconds. Thread-safe.
class CheckpointCallsOfShards {
 public:
  // Returns the thread of a shard. nullopt means the only thread of a process
  // without replicas. Lives as long as this object. Call only for shards that
  // this process leads.
  CheckpointCalls& Of(absl::optional<uint32_t> shard) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  absl::Mutex mu_;
  std::map<absl::optional<uint32_t>, CheckpointCalls> calls_
      ABSL_GUARDED_BY(mu_);
};

// Do the work of each call. The caller's permission was checked before. Return
// FAILED_PRECONDITION, with the missing flag, if `writer` is null.
absl::Status BeginCheckpoint(CheckpointWriter* writer,
                             const v1::BeginCheckpointRequest& request,
                             Cancellation* cancellation,
                             v1::CheckpointAttempt* reply);
absl::Status AttendCheckpoint(CheckpointWriter* writer,
                              const v1::AttendCheckpointRequest& request);
// Ends the turn of a caller that abandons its checkpoint, and records the
// reason. AttendCheckpoint() removes the files. Does not block on a disk.
void EndTurn(CheckpointWriter* writer,
             const v1::AttendCheckpointRequest& request);
absl::Status HoldSteps(Server* server, const v1::HoldStepsRequest& request,
                       v1::HoldStepsReply* reply);
// Do the work of the calls at the primary of a replicated shard. Both block.
absl::Status HoldSteps(ShardCuts* cuts, const v1::HoldStepsRequest& request,
                       v1::HoldStepsReply* reply);
absl::Status WriteShard(CheckpointWriter* writer,
                        const v1::WriteShardRequest& request,
                        Cancellation* cancellation, v1::ShardInfo* reply);
absl::Status CommitCheckpoint(CheckpointWriter* writer,
                              const v1::CommitCheckpointRequest& request,
                              v1::CommitCheckpointReply* reply);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SERVICE_CHECKPOINT_CALLS_H_
