// The pushes and pulls of the members of a training, at one server.

#ifndef PENSTOCK_PS_SERVER_EXCHANGE_H_
#define PENSTOCK_PS_SERVER_EXCHANGE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "ps/consistency/coordinator.h"
#include "ps/consistency/cut.h"
#include "ps/server/cut_snapshots.h"
#include "ps/server/held_gradients.h"
#include "ps/server/push_room.h"
#include "ps/server/report.h"
#include "ps/server/row_clock.h"
#include "ps/server/steps.h"
#include "ps/server/training.h"
#include "tensor_service/tensor.h"
#include "transport/base/steady_mutex.h"

namespace penstock::ps {

// The pushes and pulls of one training. A Coordinator decides which calls are
// accepted, held or answered. Steps that are ready to apply go to `steps`. The
// training ends when a step fails: from then on all calls are refused.
//
// Thread-safe. Each callback runs exactly once, without locks, on the steps'
// thread or within any thread's call. The caller chooses the tickets. Two calls
// that wait at the same time have different tickets.
class Exchange final : public StepSource {
 public:
  using Outcome = Coordinator::Outcome;
  struct Options {
    Membership::Options membership;  // a checkpoint sets clocks and floor
    // Limits the time that a push, a pull or a GetModel() call waits.
    absl::Duration max_wait = absl::Minutes(10);
    // Limits the bytes of accepted gradients that are not applied yet.
    size_t max_held_bytes = size_t{4} << 30;
    // Limits the waiting GetModel() calls, and separately the waiting pulls.
    // The limit allows one call of each rank, and as many calls of readers.
    size_t max_waiting_calls = 2 * size_t{kMaxRanks};
    // Limits the bytes of the waiting pulls' requests, which are mostly ids.
    size_t max_waiting_bytes = size_t{4} << 30;
    // True if a snapshot closes its own cut. If false, the caller closes cuts
    // by Carry(), at the same position in the order of calls at all replicas.
    bool closes_cuts = true;
    // Called with one printable line for each join, death and refusal, on any
    // thread. Peers can cause any number of lines, so the callback must limit
    // its output. If empty, the lines go to Penstock's log, which has a limit.
    std::function<void(const std::string&)> log;
  };
  struct Joined {
    absl::Duration lease;
    uint64_t clock = 0;
  };
  enum class PushVerdict {
    kCounted,
    kDuplicate,  // this push of the worker, or a later one, was counted before
    kLate,       // the step ended without this push
  };
  struct PullSpec {
    absl::optional<WorkerId> worker;
    uint64_t clock = 0;
    bool all_parts = false;
    std::vector<std::string> parts;
    tensor::Bundle ids;
    absl::optional<tensor::DType> dtype;
  };
  struct Pulled {
    tensor::Bundle bundle;
    uint64_t clock = 0;
  };
  // A push whose gradients were checked.
  struct CheckedPush {
    WorkerId worker;
    uint64_t clock = 0;
    Gradients gradients;
    size_t held_bytes = 0;
  };
  struct Checked {
    // The verdict if the push's clock alone shows that its step has ended.
    absl::optional<PushVerdict> repeated;
    CheckedPush push;
  };
  using PushCallback = std::function<void(absl::StatusOr<PushVerdict>)>;
  using PullCallback = std::function<void(absl::StatusOr<Pulled>)>;

  // Returns INVALID_ARGUMENT for invalid options. Adds the time of a push of
  // all dense values to the lease. `clock` and `steps` outlive the Exchange.
  static absl::StatusOr<std::shared_ptr<Exchange>> Create(
      const Options& options, std::shared_ptr<const Training> training,
      const RestoredModel& restored, const RowClock* clock, Steps* steps);

  // Like Server::Join().
  absl::StatusOr<Joined> Join(const WorkerId& worker);
  absl::Status Heartbeat(const WorkerId& worker);
  void Leave(const WorkerId& worker);
  void Lost(const WorkerId& worker);
  // A function that applies an event of a replica's log to the Coordinator.
  // Such an event answers no call of a worker.
  using Event = std::function<Outcome(Coordinator*)>;
  void Carry(const Event& event);
  // Blocks until `is_true` returns true, for at most `timeout`. Returns false
  // after the timeout. Also returns true if the training has failed or the
  // server drains.
  using Condition = std::function<bool(const Coordinator&)>;
  bool Await(const Condition& is_true, absl::Duration timeout) const;
  // Returns OK if `worker` is a member. Otherwise returns the error for a call
  // of this worker.
  absl::Status CheckMember(const WorkerId& worker,
                           absl::string_view call) const;
  MembersImage Members() const;

  // The three parts of Server::Push(), which a replica calls at different
  // times:
  // - Check() checks the gradients.
  // - CheckTakes() returns the error with which a push would be refused now:
  //   its worker is not a member, its clock is ahead, or there is no room for
  //   it in addition to the `pending_bytes` of other checked pushes. If a step
  //   is being applied, waits for the step's end before it judges a clock as
  //   ahead.
  // - Take() accepts the push.
  absl::StatusOr<Checked> Check(const WorkerId& worker, uint64_t clock,
                                const tensor::Bundle& gradients);
  absl::Status CheckTakes(const CheckedPush& push, size_t pending_bytes);
  void Take(uint64_t ticket, CheckedPush push, PushCallback callback,
            bool will_help);
  void Pull(uint64_t ticket, const PullSpec& spec, PullCallback callback);
  void Cancel(uint64_t ticket);
  // Stops applying new pushes until TakeSnapshot() or Release(), for
  // CutSnapshots::kHoldLimit at most. Ends the waiting snapshots with ABORTED.
  HeldSteps Hold();
  void Release();
  absl::StatusOr<ModelSnapshot> TakeSnapshot(
      uint64_t ticket, absl::optional<CutPoint> cut,
      const SparseSnapshotOptions& options, absl::Duration timeout,
      const std::function<void(uint64_t ticket)>& on_wait);

  // Ends all waiting calls, and refuses later calls.
  void Drain();

  // Returns why the training has ended; OK while the training continues.
  absl::Status failure() const;
  PushCounts push_counts() const;
  // Sets the fields about members, pushes and versions.
  void Report(ServerReport* report) const;

  std::vector<Gradients*> GradientsOf(const Coordinator::Apply& apply) override;
  void OnApplied(const Coordinator::Apply& apply) override;
  void OnFailed(const absl::Status& why) override;
  void OnDeadline() override;
  CutState StateOfApplied() const override;

 private:
  struct PendingPush {
    WorkerId worker;
    PushId id;
    Gradients gradients;
    size_t held_bytes = 0;
    PushCallback callback;
    bool will_help = false;
  };
  struct PendingPull {
    absl::optional<WorkerId> worker;
    Selection selection;
    size_t bytes = 0;  // of the selection
    PullCallback callback;
  };
  using Due = CutSnapshots::Due;

  Exchange(const Options& options, std::shared_ptr<const Training> training,
           Coordinator coordinator, const RowClock* clock, Steps* steps);

  absl::optional<PushVerdict> VerdictOnRepeatedLocked(const WorkerId& worker,
                                                      uint64_t clock) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Returns an error if there is no room for a push in addition to
  // `pending_bytes`, the bytes of pushes that are not held yet. Ends the
  // training if there can never be room.
  absl::Status CheckRoomLocked(const CheckedPush& push, size_t pending_bytes,
                               Due* due) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void FailLocked(const absl::Status& why, Due* due)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void TakePushLocked(uint64_t ticket, PendingPush* push, Due* due)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Carries out the outcome of an event. `will_help` is true if the caller
  // calls Help() soon.
  void HandleLocked(Outcome outcome, Due* due, bool will_help = false)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AnswerPushLocked(PendingPush push, const Coordinator::Answer& answer,
                        Due* due) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  PendingPull TakePullLocked(std::map<uint64_t, PendingPull>::iterator pull)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Refuses the pull with the ticket `ticket` if the waiting pulls exceed their
  // limits.
  void BoundPullsLocked(uint64_t ticket, Due* due)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AnswerPullLocked(PendingPull pull, const Coordinator::Answer& answer,
                        Due* due) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status StatusOfLocked(const absl::optional<WorkerId>& worker,
                              absl::string_view call,
                              const Coordinator::Answer& answer) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnSnapshot(uint64_t ticket, absl::StatusOr<ModelSnapshot> snapshot)
      ABSL_LOCKS_EXCLUDED(mu_);
  void RemoveSnapshot(uint64_t ticket, const absl::Status& why)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Returns true if a snapshot waits for a push before its cut for which there
  // will never be room.
  bool NeverReachesCutLocked(const CheckedPush& push) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Options options_;
  const std::shared_ptr<const Training> training_;
  const bool is_synchronous_;  // the model has a synchronous table
  const RowClock* const clock_;
  Steps* const steps_;

  mutable base::SteadyMutex mu_;  // held while steps_ is told news
  Coordinator coordinator_ ABSL_GUARDED_BY(mu_);
  HeldGradients held_ ABSL_GUARDED_BY(mu_);
  PushRoom room_ ABSL_GUARDED_BY(mu_);
  // The last counted push of each rank. If a worker sends this push again, the
  // verdict is kDuplicate instead of kLate.
  std::map<uint32_t, RankClock> last_counted_ ABSL_GUARDED_BY(mu_);
  size_t pending_bytes_ ABSL_GUARDED_BY(mu_) = 0;  // of pending_pushes_
  std::map<uint64_t, PendingPush> pending_pushes_ ABSL_GUARDED_BY(mu_);
  std::map<uint64_t, PendingPull> pending_pulls_ ABSL_GUARDED_BY(mu_);
  size_t waiting_bytes_ ABSL_GUARDED_BY(mu_) = 0;  // of pending_pulls_
  CutSnapshots snapshots_ ABSL_GUARDED_BY(mu_);
  PushCounts counts_ ABSL_GUARDED_BY(mu_);
  absl::Status failure_ ABSL_GUARDED_BY(mu_);
  bool is_draining_ ABSL_GUARDED_BY(mu_) = false;
};

// Returns true unless a step of synchronous tables is being applied. During
// such a step, events are judged by the version before the step. Servers judge
// equal sequences of calls equally if this function returns true before each
// call.
bool HasAppliedSteps(const Coordinator& coordinator);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SERVER_EXCHANGE_H_
