#include "ps/server/steps.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace penstock::ps {
namespace {

// The time between two removals of expired rows. The second one holds while
// more expired rows are left. Steps are applied in between.
constexpr absl::Duration kMaintenanceInterval = absl::Seconds(1);
constexpr absl::Duration kNextMaintenance = absl::Milliseconds(20);
// The time after which a step that found no memory is retried. Readers may
// release old versions in this time.
constexpr absl::Duration kMemoryInterval = absl::Milliseconds(20);

// Limits the bytes of values, and of gradients, in a step that Help() may
// apply. Such a step takes less than a millisecond of one core with any
// optimizer, and the helping threads also receive calls. Larger steps use all
// cores, and take longer than waking a thread.
constexpr size_t kSmallStepBytes = size_t{512} << 10;

// Returns true if all steps of the tables are small. Excludes sparse tables,
// whose steps take an unpredictable time: tables grow, evict and spill.
bool HasSmallSteps(const Tables& tables) {
  size_t bytes = 0;
  for (const Part& part : tables.parts()) {
    auto size = tensor::ByteSize(part.dtype, part.shape);
    if (!size.ok() || *size > kSmallStepBytes) return false;
    bytes += *size;
  }
  return tables.model().rows().empty() && bytes <= kSmallStepBytes;
}

absl::StatusOr<ModelSnapshot> Snapshot(const SparseSnapshotOptions& options,
                                       CutState cut, Tables* tables) {
  ModelSnapshot snapshot;
  snapshot.cut = std::move(cut);
  for (size_t i = 0; i < tables->parts().size(); ++i) {
    snapshot.parts.push_back(tables->dense().part(i).TakeSnapshot());
  }
  for (size_t i = 0; i < tables->model().rows().size(); ++i) {
    auto rows = tables->table(i).BeginSnapshot(
        i < options.size() ? options[i] : sparse::SnapshotOptions());
    if (!rows.ok()) return rows.status();
    snapshot.tables.push_back({tables->sparse_steps(i), *std::move(rows)});
  }
  return snapshot;
}

}  // namespace

using base::SteadyNow;

Steps::Steps(absl::Duration max_wait, const RowClock* clock,
             std::function<void()> on_alarm)
    : max_wait_(max_wait),
      clock_(clock),
      on_alarm_(std::move(on_alarm)),
      thread_([this] { ThreadLoop(); }) {}

Steps::~Steps() { Stop(); }

void Steps::Stop() {
  {
    absl::MutexLock lock(&mu_);
    stop_ = true;
    wake_thread_.Signal();
  }
  if (thread_.joinable()) thread_.join();
}

void Steps::Begin(std::shared_ptr<StepSource> source,
                  std::shared_ptr<Tables> tables) {
  absl::MutexLock lock(&mu_);
  DropLocked();
  source_ = std::move(source);
  tables_ = std::move(tables);
  has_small_steps_ = HasSmallSteps(*tables_);
}

void Steps::Clear() {
  // Destroyed at the end, after the lock is released.
  std::shared_ptr<StepSource> source;
  std::shared_ptr<Tables> tables;
  absl::MutexLock lock(&mu_);
  DropLocked();
  source.swap(source_);
  tables.swap(tables_);
}

void Steps::DropLocked() {
  applies_.clear();
  deadline_ = absl::InfiniteFuture();
  held_bytes_ = 0;
  has_small_steps_ = false;
  is_over_ = false;
}

void Steps::SetAlarm(absl::Time alarm) {
  absl::MutexLock lock(&mu_);
  alarm_ = alarm;
  WakeThreadLocked();
}

void Steps::Update(const StepSource* source, News news) {
  absl::MutexLock lock(&mu_);
  if (source != source_.get()) return;
  deadline_ = news.deadline;
  held_bytes_ = news.held_bytes;
  if (!news.applies.empty()) {
    if (!news.will_help || !CanBeHelpedLocked()) {
      help_ends_ = absl::InfinitePast();
    } else if (applies_.empty()) {
      help_ends_ = SteadyNow() + kHelpLimit;
    }
  }
  for (Coordinator::Apply& apply : news.applies) {
    applies_.push_back(std::move(apply));
  }
  WakeThreadLocked();
}

void Steps::End() {
  absl::MutexLock lock(&mu_);
  is_over_ = true;
}

void Steps::Drain() {
  absl::MutexLock lock(&mu_);
  is_draining_ = true;
}

absl::Time Steps::NextDeadlineLocked() const {
  absl::Time next = std::min(deadline_, alarm_);
  if (tables_ != nullptr && !tables_->model().rows().empty()) {
    next = std::min(next, next_maintenance_);
  }
  if (!applies_.empty()) next = std::min(next, help_ends_);
  return next;
}

// Returns the time at which the thread must wake next. Includes help_ends_ even
// if no step waits. A later push then need not wake the thread.
absl::Time Steps::NextWakeLocked(absl::Time now) const {
  if (is_applying_)
    return absl::InfiniteFuture();  // the applying thread wakes it
  const absl::Time next = NextDeadlineLocked();
  return help_ends_ > now ? std::min(next, help_ends_) : next;
}

// Wakes the thread if it would otherwise wake too late. Waking a thread may
// cost more than the call.
void Steps::WakeThreadLocked() {
  if (!is_applying_ && NextDeadlineLocked() < wakes_at_) wake_thread_.Signal();
}

bool Steps::HasWorkLocked(absl::Time now) const {
  if (is_applying_) return false;
  return stop_ || !snapshots_.empty() || now >= NextDeadlineLocked();
}

void Steps::ThreadLoop() {
  while (true) {
    bool has_apply = false;
    {
      absl::MutexLock lock(&mu_);
      for (absl::Time now = SteadyNow(); !HasWorkLocked(now);
           now = SteadyNow()) {
        wakes_at_ = NextWakeLocked(now);
        wake_thread_.WaitUntil(&mu_, wakes_at_);
      }
      if (stop_) return;
      is_applying_ = true;
      has_apply = !applies_.empty();
    }
    TakeSnapshots();
    if (has_apply) {
      ApplyNext(NoMemory::kWait);
    } else {
      Tick();
    }
    absl::MutexLock lock(&mu_);
    is_applying_ = false;
  }
}

// Returns true if a caller of Help() may apply the next step. Returns false
// while a snapshot waits, because only the steps' thread takes snapshots, each
// between two specific steps.
bool Steps::CanBeHelpedLocked() const {
  return has_small_steps_ && snapshots_.empty() &&
         held_bytes_ <= kSmallStepBytes;
}

bool Steps::BeginHelp() {
  absl::MutexLock lock(&mu_);
  if (applies_.empty()) return false;
  if (!is_applying_ && CanBeHelpedLocked()) {
    is_applying_ = true;
    return true;
  }
  help_ends_ = absl::InfinitePast();
  WakeThreadLocked();
  return false;
}

void Steps::EndHelp() {
  absl::MutexLock lock(&mu_);
  is_applying_ = false;
  if (!applies_.empty()) help_ends_ = absl::InfinitePast();
  // Wakes the thread for other work, such as a snapshot that was added while
  // this thread applied the step.
  if (HasWorkLocked(SteadyNow())) return wake_thread_.Signal();
  WakeThreadLocked();
}

void Steps::Help() {
  if (!BeginHelp()) return;
  ApplyNext(NoMemory::kLeaveToThread);
  EndHelp();
}

void Steps::ApplyNext(NoMemory no_memory) {
  Coordinator::Apply apply;
  std::shared_ptr<StepSource> source;
  std::shared_ptr<Tables> tables;
  {
    absl::MutexLock lock(&mu_);
    if (applies_.empty()) return;  // Clear() has dropped them
    apply = std::move(applies_.front());
    applies_.pop_front();
    if (is_over_) return;
    source = source_;
    tables = tables_;
  }
  const std::vector<Gradients*> pushes = source->GradientsOf(apply);
  absl::Status status =
      no_memory == NoMemory::kWait
          ? ApplyWhenThereIsMemory(apply, pushes, tables.get())
          : tables->Apply(apply.policy, pushes, clock_->Now());
  if (no_memory == NoMemory::kLeaveToThread &&
      absl::IsResourceExhausted(status)) {
    absl::MutexLock lock(&mu_);
    if (source != source_) return;
    applies_.push_front(std::move(apply));
    help_ends_ = absl::InfinitePast();
    return;
  }
  if (status.ok()) return source->OnApplied(apply);
  // Replaces RESOURCE_EXHAUSTED, after which clients would retry, because the
  // training is over.
  const absl::StatusCode code = absl::IsResourceExhausted(status)
                                    ? absl::StatusCode::kAborted
                                    : status.code();
  source->OnFailed(absl::Status(
      code, absl::StrCat("training has ended: step ", apply.version,
                         " failed: ", status.message())));
}

absl::Status Steps::ApplyWhenThereIsMemory(const Coordinator::Apply& apply,
                                           absl::Span<Gradients* const> pushes,
                                           Tables* tables) {
  const absl::Time limit = SteadyNow() + max_wait_;
  while (true) {
    absl::Status status = tables->Apply(apply.policy, pushes, clock_->Now());
    if (!absl::IsResourceExhausted(status)) return status;
    absl::MutexLock lock(&mu_);
    const absl::Time again = SteadyNow() + kMemoryInterval;
    const bool is_dropped = tables != tables_.get();
    if (again > limit || is_draining_ || is_dropped) return status;
    while (!stop_ && SteadyNow() < again) wake_thread_.WaitUntil(&mu_, again);
  }
}

void Steps::Tick() {
  const absl::Time now = SteadyNow();
  std::shared_ptr<StepSource> source;
  std::shared_ptr<Tables> tables;
  bool is_alarm = false;
  {
    absl::MutexLock lock(&mu_);
    is_alarm = alarm_ <= now;
    source = source_;
    if (now >= next_maintenance_) {
      tables = tables_;
      next_maintenance_ = now + kMaintenanceInterval;
    }
  }
  if (is_alarm) on_alarm_();
  if (source != nullptr) source->OnDeadline();
  if (tables != nullptr) Maintain(source.get(), tables.get());
}

// Removes expired rows between steps. Also ends the training if a disk has
// failed. Another thread's pull may have found the failure, but only this
// thread may end the training.
void Steps::Maintain(StepSource* source, Tables* tables) {
  if (tables->Maintain(clock_->Now())) {
    absl::MutexLock lock(&mu_);
    next_maintenance_ = SteadyNow() + kNextMaintenance;
  }
  const absl::Status tiers = tables->CheckTiers();
  if (tiers.ok()) return;
  source->OnFailed(absl::Status(
      tiers.code(), absl::StrCat("training has ended: ", tiers.message())));
}

void Steps::TakeSnapshots() {
  std::map<uint64_t, PendingSnapshot> due;
  std::shared_ptr<StepSource> source;
  std::shared_ptr<Tables> tables;
  {
    absl::MutexLock lock(&mu_);
    if (snapshots_.empty()) return;
    due.swap(snapshots_);
    source = source_;
    tables = tables_;
  }
  for (auto& [ticket, each] : due) {
    each.callback(
        Snapshot(each.options, source->StateOfApplied(), tables.get()));
  }
}

void Steps::AddSnapshot(uint64_t ticket, SparseSnapshotOptions options,
                        SnapshotCallback callback) {
  absl::MutexLock lock(&mu_);
  snapshots_[ticket] = {std::move(options), std::move(callback)};
  wake_thread_.Signal();
}

Steps::SnapshotCallback Steps::RemoveSnapshot(uint64_t ticket) {
  absl::MutexLock lock(&mu_);
  const auto found = snapshots_.find(ticket);
  if (found == snapshots_.end()) return nullptr;
  SnapshotCallback callback = std::move(found->second.callback);
  snapshots_.erase(found);
  return callback;
}

std::vector<Steps::SnapshotCallback> Steps::RemoveSnapshots() {
  absl::MutexLock lock(&mu_);
  std::vector<SnapshotCallback> callbacks;
  for (auto& [ticket, snapshot] : snapshots_) {
    callbacks.push_back(std::move(snapshot.callback));
  }
  snapshots_.clear();
  return callbacks;
}

}  // namespace penstock::ps
