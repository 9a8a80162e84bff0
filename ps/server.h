// One parameter server: variables, optimizer and the barrier of synchronous
// training. Knows no gRPC; service.h makes it a service.

#ifndef PENSTOCK_PS_SERVER_H_
#define PENSTOCK_PS_SERVER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "ps/optimizer.h"
#include "ps/sync_barrier.h"
#include "ps/variables.h"
#include "tensor_service/tensor.h"
#include "transport/base/steady_time.h"

namespace penstock::ps {

// Applies each step on a thread of its own.
//
// Thread-safe. No call blocks, except briefly for a lock: waits end with a
// callback. Each callback runs exactly once, without locks, on the server's own
// thread or within any thread's call.
class Server {
 public:
  struct Options {
    SyncBarrier::Options barrier;
    // Ends a Wait() that nothing else ends.
    absl::Duration max_wait = absl::Minutes(10);
    // Bounds VariableTable::held_bytes(). Beside that, each worker adds one set
    // of gradients: the size of the variables, or up to twice that, if the
    // message that they lie in is longer.
    size_t max_variable_bytes = size_t{16} << 30;
    // Called with one printable line for each join, death and refusal, on any
    // thread. If empty, the lines go to Penstock's log.
    std::function<void(const std::string&)> log;
  };

  struct PushResult {
    bool counted;
    uint64_t version;
  };
  struct Snapshot {
    uint64_t version;
    tensor::Bundle variables;  // shares the server's memory, copy on write
  };
  struct WaitSpec {
    uint64_t version = 0;
    bool want_variables = false;
    std::vector<std::string> names;  // empty: all
  };
  using WaitCallback = std::function<void(absl::StatusOr<Snapshot>)>;

  struct Report {
    bool initialized;
    uint64_t version;
    uint32_t live_workers;
    uint64_t workers_lost;
    uint64_t pushes_counted;
    uint64_t pushes_not_counted;
    uint64_t pushes_refused;
    uint64_t variable_bytes;
  };

  Server(const Options& options, std::unique_ptr<Optimizer> optimizer);
  // Calls Drain() and joins the thread. No other call may run now or later.
  ~Server();

  absl::Duration lease() const { return options_.barrier.lease; }

  // Makes `member` a member, in place of an older incarnation of its rank.
  // Returns the current version, or UNAVAILABLE while draining.
  absl::StatusOr<uint64_t> Join(MemberId member);
  // Renews the member's lease; makes it a member first, if its rank is free.
  // Returns ABORTED if another incarnation has the rank, and UNAVAILABLE while
  // draining.
  absl::Status Heartbeat(MemberId member);
  // Ends the membership. Lost() also counts the worker as lost, and logs that.
  // Both ignore a worker that is no member.
  void Leave(MemberId member);
  void Lost(MemberId member);

  // Takes the first values of the variables. Returns false if there were values
  // already; then nothing changes. Keeps the tensors, which share memory with
  // the message they came in, and copies those that are less than half of it.
  //
  // Returns FAILED_PRECONDITION unless the rank is 0, RESOURCE_EXHAUSTED above
  // max_variable_bytes, INVALID_ARGUMENT as VariableTable::Create() does, and
  // UNAVAILABLE while draining.
  absl::StatusOr<bool> Initialize(MemberId member,
                                  const tensor::Bundle& values);

  // Takes the gradients of `step`. A repeated or late push succeeds, changes
  // nothing and is not counted.
  //
  // Returns FAILED_PRECONDITION before Initialize(), for one that is no member
  // and for a step ahead of the current one; ABORTED for a worker that was
  // superseded; INVALID_ARGUMENT as VariableTable::Check() does; UNAVAILABLE
  // while draining; and once a step could not be applied, that step's error.
  absl::StatusOr<PushResult> Push(MemberId member, uint64_t step,
                                  const tensor::Bundle& gradients);

  // Calls back once there are variables and `spec.version` steps have been
  // applied, perhaps before Wait() returns. Returns a ticket for Cancel().
  //
  // The callback gets NOT_FOUND for an unknown name; DEADLINE_EXCEEDED after
  // max_wait, which names the workers that the step waits for; CANCELLED by
  // Cancel(); UNAVAILABLE while draining; and once a step could not be applied,
  // that step's error.
  uint64_t Wait(WaitSpec spec, WaitCallback callback);

  // Ends the wait with CANCELLED, if it has not ended.
  void Cancel(uint64_t ticket);

  // Ends every wait, and refuses what comes later. Still finishes a step that
  // is being applied. May be called again.
  void Drain();

  Report report() const;

 private:
  struct Waiter {
    WaitSpec spec;
    WaitCallback callback;
    absl::Time deadline;  // by SteadyNow(), as all times here
  };
  // Callbacks to run once the lock is free.
  using Due = std::vector<std::function<void()>>;

  // Gives the event to the barrier, does what follows from it, and runs the
  // callbacks that have become due. Keeps `gradients` if the barrier accepts
  // the push.
  SyncBarrier::Verdict Feed(const SyncBarrier::Event& event,
                            GradientSet* gradients = nullptr)
      ABSL_LOCKS_EXCLUDED(mu_);
  void ApplyUnlocked(const SyncBarrier::Apply& apply) ABSL_LOCKS_EXCLUDED(mu_);
  void CollectDueLocked(absl::Time now, Due* due)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool IsDueLocked(const Waiter& waiter) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::StatusOr<Snapshot> SnapshotLocked(const WaitSpec& spec) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status TimeoutLocked(const WaitSpec& spec) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::StatusOr<std::shared_ptr<const VariableTable>> CheckValues(
      const tensor::Bundle& values) const;
  absl::StatusOr<GradientSet> CheckPush(const tensor::Bundle& gradients)
      ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<PushResult> Judge(SyncBarrier::Verdict verdict,
                                   const MemberId& member, uint64_t step)
      ABSL_LOCKS_EXCLUDED(mu_);
  void ThreadLoop() ABSL_LOCKS_EXCLUDED(mu_);
  absl::Time NextDeadlineLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Log(const std::vector<std::string>& notes) const;

  const Options options_;
  const std::unique_ptr<Optimizer> optimizer_;  // Apply(): thread_ only

  mutable absl::Mutex mu_;
  base::SteadyCondVar wake_server_thread_;
  SyncBarrier barrier_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<const VariableTable> table_ ABSL_GUARDED_BY(mu_);
  // Empty while a step is being applied: then thread_ has them.
  std::vector<tensor::Tensor> values_ ABSL_GUARDED_BY(mu_);
  std::map<uint32_t, GradientSet> gradients_ ABSL_GUARDED_BY(mu_);  // by rank
  std::map<uint64_t, Waiter> waiters_ ABSL_GUARDED_BY(mu_);         // by ticket
  absl::optional<SyncBarrier::Apply> pending_apply_ ABSL_GUARDED_BY(mu_);
  uint64_t next_ticket_ ABSL_GUARDED_BY(mu_) = 1;
  absl::Status failure_ ABSL_GUARDED_BY(mu_);  // of the first step that failed
  uint64_t pushes_counted_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t pushes_not_counted_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t pushes_refused_ ABSL_GUARDED_BY(mu_) = 0;
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  // Applies steps and watches deadlines.
  std::thread thread_;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SERVER_H_
