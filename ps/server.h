// One parameter server: variables, optimizer and the barrier of synchronous
// training, without any gRPC. service.h makes it callable.

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

// Thread safety: every function may be called from any thread. None blocks but
// for a short lock: waiting is by callback, and steps are applied on the
// server's own thread. Callbacks run exactly once, on that thread or on the
// one of any other call, never under the lock.
class Server {
 public:
  struct Options {
    SyncBarrier::Options barrier;
    // A wait that no deadline of its caller ends, ends after this.
    absl::Duration max_wait = absl::Minutes(10);
    // Bounds what the variables hold; each worker can add one gradient of their
    // size, or twice that, where its message is longer.
    size_t max_variable_bytes = size_t{16} << 30;
    // Gets one printable line per join, death and refusal; must be callable
    // from any thread. The default is Penstock's own log.
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
    std::vector<std::string> names;  // none: all
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
  // Drains. No call may be running or come later.
  ~Server();

  absl::Duration lease() const { return options_.barrier.lease; }

  // The current version. UNAVAILABLE while draining.
  absl::StatusOr<uint64_t> Join(MemberId member);
  // ABORTED where a newer incarnation has the rank.
  absl::Status Heartbeat(MemberId member);
  void Leave(MemberId member);
  void Lost(MemberId member);

  // Whether these values were taken; false if there were some already. Values
  // that are less than half of their message are copied. FAILED_PRECONDITION
  // but from rank 0, RESOURCE_EXHAUSTED above the budget, INVALID_ARGUMENT as
  // VariableTable::Create.
  absl::StatusOr<bool> Initialize(MemberId member,
                                  const tensor::Bundle& values);

  // Takes the gradients of `step`. A repeated or late push succeeds and counts
  // for nothing. FAILED_PRECONDITION before initialisation, for a stranger or
  // for a step ahead; ABORTED for a superseded worker; INVALID_ARGUMENT as
  // VariableTable::Check.
  absl::StatusOr<PushResult> Push(MemberId member, uint64_t step,
                                  const tensor::Bundle& gradients);

  // Calls back once there are variables and `spec.version` steps are applied:
  // perhaps before it returns. DEADLINE_EXCEEDED after max_wait, naming whom
  // the step waits for; UNAVAILABLE when draining. The ticket is for Cancel.
  uint64_t Wait(WaitSpec spec, WaitCallback callback);

  // Ends a wait, if it still is one, with CANCELLED.
  void Cancel(uint64_t ticket);

  // Ends every wait and refuses what comes later. A step that is being applied
  // is finished. Idempotent.
  void Drain();

  Report report() const;

 private:
  struct Waiter {
    WaitSpec spec;
    WaitCallback callback;
    absl::Time deadline;  // of SteadyNow(), as all times here
  };
  // Callbacks that are due, to be run when the lock is free.
  using Due = std::vector<std::function<void()>>;

  // Gives an event to the barrier and does all that follows from it, then runs
  // what has become due; the lock is free during the callbacks.
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
  const std::unique_ptr<Optimizer> optimizer_;  // Apply: thread_ only

  mutable absl::Mutex mu_;
  base::SteadyCondVar wake_server_thread_;
  SyncBarrier barrier_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<const VariableTable> table_ ABSL_GUARDED_BY(mu_);
  // Read and shared under the lock unless a step is being applied, which
  // takes them away for as long.
  std::vector<tensor::Tensor> values_ ABSL_GUARDED_BY(mu_);
  std::map<uint32_t, GradientSet> gradients_ ABSL_GUARDED_BY(mu_);  // by rank
  std::map<uint64_t, Waiter> waiters_ ABSL_GUARDED_BY(mu_);         // by ticket
  absl::optional<SyncBarrier::Apply> pending_apply_ ABSL_GUARDED_BY(mu_);
  uint64_t next_ticket_ ABSL_GUARDED_BY(mu_) = 1;
  absl::Status failure_ ABSL_GUARDED_BY(mu_);  // the first; ends training
  uint64_t pushes_counted_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t pushes_not_counted_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t pushes_refused_ ABSL_GUARDED_BY(mu_) = 0;
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  // Applies steps and watches deadlines.
  std::thread thread_;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SERVER_H_
