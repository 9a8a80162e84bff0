// The members of a training at one server, and their pushes and pulls: taken,
// held and answered.

#ifndef PENSTOCK_PS_SERVER_EXCHANGE_H_
#define PENSTOCK_PS_SERVER_EXCHANGE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "ps/consistency/coordinator.h"
#include "ps/consistency/cut.h"
#include "ps/server/held_gradients.h"
#include "ps/server/report.h"
#include "ps/server/row_clock.h"
#include "ps/server/steps.h"
#include "ps/server/training.h"
#include "tensor_service/tensor.h"

namespace penstock::ps {

// Decides by a Coordinator, and hands out to `steps` what is to be applied. The
// training ends when a step fails: from then on all calls are refused.
//
// Thread-safe. Each callback runs exactly once, without locks, on the steps'
// thread or within any thread's call. Tickets are the caller's; no two calls
// that wait have the same.
class Exchange final : public StepSource {
 public:
  struct Options {
    Membership::Options membership;  // but for what a checkpoint has
    // Ends a wait that nothing else ends.
    absl::Duration max_wait = absl::Minutes(10);
    // Bounds the gradients that are taken and not applied.
    size_t max_held_bytes = size_t{4} << 30;
    // Bounds the GetModel() calls that wait, and the pulls: one of each rank,
    // and as many of readers.
    size_t max_waiting_calls = 2 * size_t{kMaxRanks};
    // Bounds what those pulls have asked for: ids, above all.
    size_t max_waiting_bytes = size_t{4} << 30;
    // Called with one printable line for each join, death and refusal, on any
    // thread, and as often as peers cause them: it has to bound what it writes.
    // If empty, the lines go to Penstock's log, which does.
    std::function<void(const std::string&)> log;
  };
  struct Joined {
    absl::Duration lease;
    uint64_t clock = 0;
  };
  enum class PushVerdict {
    kCounted,
    kDuplicate,  // this push of the worker, or a later one, has counted
    kLate,       // the step has ended without it
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
  using PushCallback = std::function<void(absl::StatusOr<PushVerdict>)>;
  using PullCallback = std::function<void(absl::StatusOr<Pulled>)>;

  // Returns INVALID_ARGUMENT for options that cannot be. `clock` and `steps`
  // outlive it.
  static absl::StatusOr<std::shared_ptr<Exchange>> Create(
      const Options& options, std::shared_ptr<const Training> training,
      const RestoredModel& restored, const RowClock* clock, Steps* steps);

  // See Server.
  absl::StatusOr<Joined> Join(const WorkerId& worker);
  absl::Status Heartbeat(const WorkerId& worker);
  void Leave(const WorkerId& worker);
  void Lost(const WorkerId& worker);
  // Returns true if another incarnation has had the rank after `worker`.
  bool IsSuperseded(const WorkerId& worker) const;

  void Push(uint64_t ticket, const WorkerId& worker, uint64_t clock,
            const tensor::Bundle& gradients, PushCallback callback,
            bool will_help);
  void Pull(uint64_t ticket, const PullSpec& spec, PullCallback callback);
  void Cancel(uint64_t ticket);
  // Applies nothing new until TakeSnapshot(), Release(), or kHoldLimit is over.
  HeldSteps Hold();
  void Release();
  absl::StatusOr<ModelSnapshot> TakeSnapshot(
      uint64_t ticket, absl::optional<CutPoint> cut,
      const SparseSnapshotOptions& options, absl::Duration timeout,
      const std::function<void(uint64_t ticket)>& on_wait);
  static constexpr absl::Duration kHoldLimit = absl::Seconds(5);

  // Ends every wait, and refuses what comes later.
  void Drain();

  // Why the training has ended; OK: it has not.
  absl::Status failure() const;
  PushCounts push_counts() const;
  // Fills in what there is to tell of members, pushes and versions.
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
  struct PendingSnapshot {
    uint64_t ticket = 0;
    absl::optional<CutPoint> cut;
    SparseSnapshotOptions options;
    Steps::SnapshotCallback callback;
  };
  // Callbacks to run once the lock is free.
  using Due = std::vector<std::function<void()>>;
  using Outcome = Coordinator::Outcome;

  Exchange(const Options& options, std::shared_ptr<const Training> training,
           Coordinator coordinator, const RowClock* clock, Steps* steps);

  absl::optional<PushVerdict> VerdictOnRepeatedLocked(const WorkerId& worker,
                                                      uint64_t clock) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Returns an error if there is no room for `bytes` more of gradients.
  absl::Status CheckRoomLocked(size_t bytes) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void TakePushLocked(uint64_t ticket, PendingPush* push, Due* due)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void RefusePush(const PendingPush& push, const absl::Status& why)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Does what follows from an event. `will_help`: whose caller calls Help().
  void HandleLocked(Outcome outcome, Due* due, bool will_help = false)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AnswerPushLocked(PendingPush push, const Coordinator::Answer& answer,
                        Due* due) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  PendingPull TakePullLocked(std::map<uint64_t, PendingPull>::iterator pull)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Refuses the pull if it waits and too many do, or have asked for too much.
  void BoundPullsLocked(uint64_t ticket, Due* due)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AnswerPullLocked(PendingPull pull, const Coordinator::Answer& answer,
                        Due* due) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status StatusOfLocked(const absl::optional<WorkerId>& worker,
                              absl::string_view call,
                              const Coordinator::Answer& answer) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::optional<uint64_t> VersionLocked() const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ReleaseLocked(Due* due) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // The first of the snapshots that wait goes for its cut.
  void BeginSnapshotLocked(Due* due) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Takes it, if the cut is reached.
  void TakeSnapshotAtCutLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnSnapshot(uint64_t ticket, absl::StatusOr<ModelSnapshot> snapshot)
      ABSL_LOCKS_EXCLUDED(mu_);
  bool RemoveSnapshot(uint64_t ticket, const absl::Status& why)
      ABSL_LOCKS_EXCLUDED(mu_);
  void EndSnapshotsLocked(const absl::Status& why, Due* due)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  static void Run(const Due& due);

  const Options options_;
  const std::shared_ptr<const Training> training_;
  const RowClock* const clock_;
  Steps* const steps_;

  mutable absl::Mutex mu_;  // held while steps_ is told news
  Coordinator coordinator_ ABSL_GUARDED_BY(mu_);
  HeldGradients held_ ABSL_GUARDED_BY(mu_);
  // The last push of each rank that counted: who repeats it has to know that it
  // did, and not only that its step is over.
  std::map<uint32_t, RankClock> last_counted_ ABSL_GUARDED_BY(mu_);
  size_t pending_bytes_ ABSL_GUARDED_BY(mu_) = 0;  // of pending_pushes_
  std::map<uint64_t, PendingPush> pending_pushes_ ABSL_GUARDED_BY(mu_);
  std::map<uint64_t, PendingPull> pending_pulls_ ABSL_GUARDED_BY(mu_);
  size_t waiting_bytes_ ABSL_GUARDED_BY(mu_) = 0;  // of pending_pulls_
  // Each goes for its cut when those before it are taken.
  std::deque<PendingSnapshot> snapshots_ ABSL_GUARDED_BY(mu_);
  bool is_at_cut_ ABSL_GUARDED_BY(mu_) = false;  // and steps_ takes the first
  // When a hold ends that no snapshot has followed.
  absl::Time hold_ends_ ABSL_GUARDED_BY(mu_) = absl::InfiniteFuture();
  PushCounts counts_ ABSL_GUARDED_BY(mu_);
  absl::Status failure_ ABSL_GUARDED_BY(mu_);
  bool is_draining_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SERVER_EXCHANGE_H_
