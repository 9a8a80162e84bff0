// Calls that wait for disks, on a thread of their own: of checkpoints, and of
// restores.

#ifndef PENSTOCK_PS_SERVICE_CHECKPOINT_CALLS_H_
#define PENSTOCK_PS_SERVICE_CHECKPOINT_CALLS_H_

#include <deque>
#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "grpcpp/support/server_callback.h"
#include "ps/server/cancellation.h"
#include "ps/server/checkpoint_writer.h"
#include "ps/wire/ps.pb.h"

namespace penstock::ps {

// Does the work of calls one after another, on one thread, which begins with
// the first of them. Thread-safe.
class CheckpointCalls {
 public:
  using Work = std::function<absl::Status(Cancellation*)>;

  CheckpointCalls() = default;
  // All calls have ended.
  ~CheckpointCalls();
  CheckpointCalls(const CheckpointCalls&) = delete;
  CheckpointCalls& operator=(const CheckpointCalls&) = delete;

  // Returns the reactor of a call, which ends with what `work` returns. A call
  // that is cancelled before its turn has no work. The reactor deletes itself.
  grpc::ServerUnaryReactor* Start(Work work);

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

// What each call does, given that its caller may. `writer` may be null: then
// they return FAILED_PRECONDITION, which says what the server lacks.
absl::Status BeginCheckpoint(CheckpointWriter* writer,
                             const v1::BeginCheckpointRequest& request,
                             v1::CheckpointAttempt* reply);
absl::Status HoldSteps(Server* server, const v1::HoldStepsRequest& request,
                       v1::HoldStepsReply* reply);
absl::Status WriteShard(CheckpointWriter* writer,
                        const v1::WriteShardRequest& request,
                        Cancellation* cancellation, v1::ShardInfo* reply);
absl::Status CommitCheckpoint(CheckpointWriter* writer,
                              const v1::CommitCheckpointRequest& request,
                              v1::CommitCheckpointReply* reply);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SERVICE_CHECKPOINT_CALLS_H_
