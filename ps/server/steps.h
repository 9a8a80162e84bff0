// The thread of a server that takes optimizer steps, and snapshots between
// them.

#ifndef PENSTOCK_PS_SERVER_STEPS_H_
#define PENSTOCK_PS_SERVER_STEPS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "ps/consistency/coordinator.h"
#include "ps/server/model_snapshot.h"
#include "ps/server/row_clock.h"
#include "ps/server/tables.h"
#include "transport/base/steady_time.h"

namespace penstock::ps {

// Provides the steps to apply. Steps calls the source without holding a lock,
// and from one thread at a time.
class StepSource {
 public:
  virtual ~StepSource() = default;
  // Returns the gradients of a step's pushes. They are valid until OnApplied().
  virtual std::vector<Gradients*> GradientsOf(
      const Coordinator::Apply& apply) = 0;
  // Called after a step was applied.
  virtual void OnApplied(const Coordinator::Apply& apply) = 0;
  // Called when the training must end because a step has failed.
  virtual void OnFailed(const absl::Status& why) = 0;
  // Called at the deadline of the last Steps::Update(), or earlier.
  virtual void OnDeadline() = 0;
  // Returns the state of the training after the last applied step. Excludes
  // pushes that are not applied.
  virtual CutState StateOfApplied() const = 0;
};

// The only writer of a server's values. Applies steps one after another, takes
// snapshots between steps, and removes expired rows. Calls the source at
// deadlines.
//
// Thread-safe. Only Help() and Stop() block, and must be called without a lock.
// The caller of any other method may hold a lock.
class Steps {
 public:
  // Starts the thread. No step is applied before Begin(). The thread calls
  // `on_alarm` at the time that SetAlarm() has set.
  Steps(absl::Duration max_wait, const RowClock* clock,
        std::function<void()> on_alarm);
  // Calls Stop().
  ~Steps();

  // Applies the steps of `source` from now on, and drops those of an earlier
  // source.
  void Begin(std::shared_ptr<StepSource> source,
             std::shared_ptr<Tables> tables);
  // Releases the source and the tables. No step is applied until Begin().
  void Clear();
  void SetAlarm(absl::Time alarm);

  // The source's state after an event.
  struct News {
    absl::Time deadline = absl::InfiniteFuture();
    size_t held_bytes = 0;  // of gradients that are not applied
    std::vector<Coordinator::Apply> applies;
    // True if the caller calls Help() soon.
    bool will_help = false;
  };
  // Records the changes in `news`. Ignores a source that Begin() has replaced.
  void Update(const StepSource* source, News news);

  // Applies a waiting step on the caller's thread, if the step is small. Waking
  // the steps' thread for such a step takes longer than the step itself, and on
  // few cores delays the reader of the answer. The steps' thread applies the
  // step if no caller helps within kHelpLimit.
  void Help();
  static constexpr absl::Duration kHelpLimit = absl::Milliseconds(10);

  using SnapshotCallback =
      std::function<void(absl::StatusOr<ModelSnapshot> snapshot)>;
  // Requests a snapshot before the next step begins. Calls `callback` on the
  // steps' thread, unless RemoveSnapshot() comes first.
  void AddSnapshot(uint64_t ticket, SparseSnapshotOptions options,
                   SnapshotCallback callback);
  // Withdraws a waiting snapshot. Returns its callback, or null if no snapshot
  // with this ticket waits.
  SnapshotCallback RemoveSnapshot(uint64_t ticket);
  // Withdraws all waiting snapshots.
  std::vector<SnapshotCallback> RemoveSnapshots();

  // Stops new steps. A step that is being applied still ends.
  void End();
  // Ends the wait for memory of a step.
  void Drain();
  // Ends the thread, and waits for its end.
  void Stop();

 private:
  struct PendingSnapshot {
    SparseSnapshotOptions options;
    SnapshotCallback callback;
  };
  enum class NoMemory { kWait, kLeaveToThread };

  void ThreadLoop() ABSL_LOCKS_EXCLUDED(mu_);
  bool HasWorkLocked(absl::Time now) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Time NextDeadlineLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Time NextWakeLocked(absl::Time now) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void WakeThreadLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool CanBeHelpedLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool BeginHelp() ABSL_LOCKS_EXCLUDED(mu_);
  void EndHelp() ABSL_LOCKS_EXCLUDED(mu_);
  void ApplyNext(NoMemory no_memory) ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status ApplyWhenThereIsMemory(const Coordinator::Apply& apply,
                                      absl::Span<Gradients* const> pushes,
                                      Tables* tables) ABSL_LOCKS_EXCLUDED(mu_);
  void DropLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Tick() ABSL_LOCKS_EXCLUDED(mu_);
  void Maintain(StepSource* source, Tables* tables) ABSL_LOCKS_EXCLUDED(mu_);
  void TakeSnapshots() ABSL_LOCKS_EXCLUDED(mu_);

  const absl::Duration max_wait_;
  const RowClock* const clock_;
  const std::function<void()> on_alarm_;

  absl::Mutex mu_;
  base::SteadyCondVar wake_thread_;
  std::shared_ptr<StepSource> source_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<Tables> tables_ ABSL_GUARDED_BY(mu_);
  std::deque<Coordinator::Apply> applies_ ABSL_GUARDED_BY(mu_);
  // The time until which the thread leaves the steps in `applies_` to callers
  // of Help().
  absl::Time help_ends_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();
  // True while the steps' thread or a helping thread works on the tables.
  bool is_applying_ ABSL_GUARDED_BY(mu_) = false;
  bool has_small_steps_ ABSL_GUARDED_BY(mu_) = false;
  std::map<uint64_t, PendingSnapshot> snapshots_ ABSL_GUARDED_BY(mu_);
  // The values that the last Update() set.
  absl::Time deadline_ ABSL_GUARDED_BY(mu_) = absl::InfiniteFuture();
  size_t held_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  absl::Time alarm_ ABSL_GUARDED_BY(mu_) = absl::InfiniteFuture();
  absl::Time next_maintenance_ ABSL_GUARDED_BY(mu_);
  // The time until which the thread sleeps, unless it is woken.
  absl::Time wakes_at_ ABSL_GUARDED_BY(mu_) = absl::InfiniteFuture();
  bool is_over_ ABSL_GUARDED_BY(mu_) = false;
  bool is_draining_ ABSL_GUARDED_BY(mu_) = false;
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SERVER_STEPS_H_
