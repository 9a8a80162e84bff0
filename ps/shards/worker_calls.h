// Handles the calls of workers at a replica.

#ifndef PENSTOCK_PS_SHARDS_WORKER_CALLS_H_
#define PENSTOCK_PS_SHARDS_WORKER_CALLS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "ps/server/calls.h"
#include "ps/shards/entry.h"
#include "ps/shards/replica_state.h"
#include "transport/base/recent_lines.h"

namespace penstock::ps {

// Turns the workers' calls into entries of the log, and answers the calls with
// the verdicts of the primary's Server. Answers only while no other server can
// be the primary.
//
//   call        at the primary                          elsewhere
//   ----------  --------------------------------------  -----------
//   push        checked, logged, committed, fed         UNAVAILABLE
//   join        logged, committed, fed                  UNAVAILABLE
//   pull        answered by the Server, which has been  UNAVAILABLE
//               fed all entries of earlier primaries
//   heartbeat   renews the worker's lease               UNAVAILABLE
//   leave,      logged                                  ignored
//   lost
//
// The message of each UNAVAILABLE begins with kNotPrimary. If another server
// becomes the primary, waiting calls end in the same way. The calls at a
// primary that leaves its shard to a backup also do, so that no call waits for
// a backup that does not live.
//
// No entry depends on time. The primary turns the expiry of a worker's lease
// into an entry, and the leases in the Servers never expire.
//
// Thread-safe. Keep it in a shared_ptr.
class WorkerCalls final : public Calls,
                          public std::enable_shared_from_this<WorkerCalls> {
 public:
  explicit WorkerCalls(std::shared_ptr<ReplicaState> state);

  uint64_t StartJoin(const View& view, const WorkerId& worker,
                     JoinCallback callback) override;
  absl::Status Heartbeat(uint64_t run, const WorkerId& worker) override;
  void Leave(const WorkerId& worker, uint64_t run) override;
  void Lost(const WorkerId& worker, uint64_t run) override;
  uint64_t Push(const View& view, const WorkerId& worker, uint64_t clock,
                const tensor::Bundle& gradients, PushCallback callback,
                bool will_help) override;
  uint64_t Pull(const View& view, const Exchange::PullSpec& spec,
                PullCallback callback) override;
  void Help() override {}
  void Cancel(uint64_t ticket) override;

  // Adds to `due` the work that can run now.
  void Collect(absl::Time now, ReplicaState::Due* due);
  // Reads the members from the Server, once the server was fed the entries of
  // earlier primaries. Ends the leases of silent workers.
  void ExpireWorkers();
  // Returns the checked gradients of this entry's push, if this server has
  // checked the push; otherwise nothing.
  absl::optional<CheckedGradients> TakeChecked(uint64_t seq);
  // Answer a call with the Server's verdict as soon as the primary may answer.
  // Do not answer if the role has changed since `reign`.
  void AnswerPush(uint64_t reign, uint64_t ticket,
                  absl::StatusOr<Exchange::PushVerdict> verdict);
  void AnswerJoin(uint64_t reign, uint64_t ticket,
                  absl::StatusOr<Exchange::Joined> joined);

 private:
  absl::optional<Tickets::Ticket> TakeTicket(uint64_t ticket);
  // Adds to `due` the end of all calls, because a backup has to take over.
  void LeaveLocked(ReplicaState::Due* due)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_->mu);
  void AnswerWhenSure(uint64_t reign, uint64_t ticket,
                      std::function<void()> go);
  void CheckPush(const PushCallPtr& call, uint64_t reign);
  void AcceptPush(const PushCallPtr& call, uint64_t reign);
  // Returns an error if there is no room for the gradients. `entering` is the
  // number of the push in EnteringPushes.
  absl::Status FindRoom(const PushCallPtr& call, uint64_t reign,
                        uint64_t entering);
  // Returns an error if there is no room for the gradients in addition to those
  // in the log, at its gate, and of pushes that entered before `entering`.
  absl::Status CheckRoom(const PushCallPtr& call, uint64_t reign,
                         uint64_t entering);
  // Stores the push at the gate, or adds it to the log. Changes nothing if
  // `status` is an error. Returns nullopt if the answer comes later.
  absl::optional<absl::Status> EnterLocked(const PushCallPtr& call,
                                           uint64_t reign, absl::Status status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_->mu);
  // If `call` may pass the gate, refuses the pushes that wait at the gate,
  // because a checkpoint waits for `call`. Returns false if no push waits
  // there.
  bool MakeRoom(const PushCallPtr& call, uint64_t reign);
  void StartPull(uint64_t ticket, const View& view,
                 const Exchange::PullSpec& spec, uint64_t reign);
  void OnPulled(uint64_t ticket, uint64_t reign,
                absl::StatusOr<Exchange::Pulled> pulled);
  // Returns true if the event is in the log.
  bool SubmitLocked(EventPayload::Kind kind, const WorkerId& worker)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_->mu);
  void Submit(EventPayload::Kind kind, const WorkerId& worker, uint64_t run);

  const std::shared_ptr<ReplicaState> state_;
  base::RecentLines refusals_ ABSL_GUARDED_BY(state_->mu);
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SHARDS_WORKER_CALLS_H_
