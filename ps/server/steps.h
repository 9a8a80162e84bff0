// Steps of the optimizer, and snapshots between them: a server's own thread.

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

// Whoever hands out steps. Steps calls it without a lock of its own, and by one
// thread at a time.
class StepSource {
 public:
  virtual ~StepSource() = default;
  // Returns what the pushes of a step have brought; valid until OnApplied().
  virtual std::vector<Gradients*> GradientsOf(
      const Coordinator::Apply& apply) = 0;
  // Says that a step was done, and that none will be any more.
  virtual void OnApplied(const Coordinator::Apply& apply) = 0;
  virtual void OnFailed(const absl::Status& why) = 0;
  // Comes at the deadline that Steps::Update() was told.
  virtual void OnDeadline() = 0;
  // Returns where the training is, less the pushes that are not applied.
  virtual CutState StateOfApplied() const = 0;
};

// The one place where values change: applies steps one after another, takes
// snapshots between them, and removes rows whose time is over. Calls back for
// deadlines.
//
// Thread-safe. No call blocks, except for a lock and Help(). The caller may
// hold a lock of its own, except in Help().
class Steps {
 public:
  // `on_alarm` is called at the time that SetAlarm() was given. Work starts
  // with Begin().
  Steps(absl::Duration max_wait, const RowClock* clock,
        std::function<void()> on_alarm);
  // Calls Stop().
  ~Steps();

  void Begin(std::shared_ptr<StepSource> source,
             std::shared_ptr<Tables> tables);
  void SetAlarm(absl::Time alarm);

  // The source's state after an event.
  struct News {
    absl::Time deadline = absl::InfiniteFuture();
    size_t held_bytes = 0;  // of gradients that are not applied
    std::vector<Coordinator::Apply> applies;
    // The caller calls Help() soon.
    bool will_help = false;
  };
  // Ignores one that Begin() has replaced.
  void Update(const StepSource* source, News news);

  // Applies a step, if one waits that is small: to wake the thread for it takes
  // longer, and on few cores takes one from who waits for the answer. Steps
  // that nobody helps with the thread applies, after kHelpLimit at most.
  void Help();
  static constexpr absl::Duration kHelpLimit = absl::Milliseconds(10);

  using SnapshotCallback =
      std::function<void(absl::StatusOr<ModelSnapshot> snapshot)>;
  // Takes a snapshot before any step that has not begun. Calls back on the
  // thread, unless the snapshot is taken back before.
  void AddSnapshot(uint64_t ticket, SparseSnapshotOptions options,
                   SnapshotCallback callback);
  // Takes it back. Returns null if there is none.
  SnapshotCallback RemoveSnapshot(uint64_t ticket);
  // Takes back all that wait.
  std::vector<SnapshotCallback> RemoveSnapshots();

  // No step begins any more; one that is being applied ends.
  void End();
  // Ends it even if it waits for memory.
  void Drain();
  // Joins the thread.
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
  // Until then the thread leaves what is in there to who helps.
  absl::Time help_ends_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();
  // A thread, its own or one that helps, works on the tables as the only one.
  bool is_applying_ ABSL_GUARDED_BY(mu_) = false;
  bool has_small_steps_ ABSL_GUARDED_BY(mu_) = false;
  std::map<uint64_t, PendingSnapshot> snapshots_ ABSL_GUARDED_BY(mu_);
  // The last news.
  absl::Time deadline_ ABSL_GUARDED_BY(mu_) = absl::InfiniteFuture();
  size_t held_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  absl::Time alarm_ ABSL_GUARDED_BY(mu_) = absl::InfiniteFuture();
  absl::Time next_maintenance_ ABSL_GUARDED_BY(mu_);
  // Until when the thread waits, unless it is woken.
  absl::Time wakes_at_ ABSL_GUARDED_BY(mu_) = absl::InfiniteFuture();
  bool is_over_ ABSL_GUARDED_BY(mu_) = false;
  bool is_draining_ ABSL_GUARDED_BY(mu_) = false;
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SERVER_STEPS_H_
