// The server's own thread: steps, snapshots, deadlines.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "ps/server/refusals.h"
#include "ps/server/server.h"

namespace penstock::ps {
namespace {

// Rows whose time is over are removed so often, and so soon again while there
// are more of them. Steps are taken in between.
constexpr absl::Duration kMaintenanceInterval = absl::Seconds(1);
constexpr absl::Duration kNextMaintenance = absl::Milliseconds(20);
// A step for which there is no memory is tried again after so long: readers may
// have let go of old versions meanwhile.
constexpr absl::Duration kMemoryInterval = absl::Milliseconds(20);

}  // namespace

using base::SteadyNow;

absl::Time Server::NextDeadlineLocked() const {
  absl::Time next = absl::InfiniteFuture();
  if (coordinator_.has_value()) {
    next = std::min(next, coordinator_->NextDeadline());
  }
  if (!pending_ready_.empty()) {
    next = std::min(next, pending_ready_.begin()->second.deadline);
  }
  if (training_ != nullptr && !training_->tables->model().rows().empty()) {
    next = std::min(next, next_maintenance_);
  }
  if (!applies_.empty()) next = std::min(next, help_ends_);
  return next;
}

// Also when the last push can be helped no longer, though it was: the next one
// then finds a time that is early enough, and need not wake the thread.
absl::Time Server::NextWakeLocked(absl::Time now) const {
  if (is_applying_) return absl::InfiniteFuture();  // who does so wakes it
  const absl::Time next = NextDeadlineLocked();
  return help_ends_ > now ? std::min(next, help_ends_) : next;
}

// Not for each call: to wake a thread for nothing may cost more than the call.
void Server::WakeThreadLocked() {
  if (!is_applying_ && NextDeadlineLocked() < wakes_at_) wake_thread_.Signal();
}

bool Server::HasWorkLocked(absl::Time now) const {
  if (is_applying_) return false;
  if (stop_ || now >= NextDeadlineLocked()) return true;
  return std::any_of(pending_snapshots_.begin(), pending_snapshots_.end(),
                     [this](const auto& pending)
                         ABSL_NO_THREAD_SAFETY_ANALYSIS {
                           return IsDueLocked(pending.second);
                         });
}

void Server::ThreadLoop() {
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

void Server::ApplyNext(NoMemory no_memory) {
  Coordinator::Apply apply;
  std::vector<Gradients*> pushes;
  std::shared_ptr<Training> training;
  {
    absl::MutexLock lock(&mu_);
    apply = std::move(applies_.front());
    applies_.pop_front();
    if (!failure_.ok()) return;
    pushes = held_.Of(apply.pushes);
    training = training_;
  }
  absl::Status status =
      no_memory == NoMemory::kWait
          ? ApplyWhenThereIsMemory(apply, absl::MakeSpan(pushes),
                                   training->tables.get())
          : training->tables->Apply(apply.policy, pushes, RowNow());
  if (no_memory == NoMemory::kLeaveToThread &&
      absl::IsResourceExhausted(status)) {
    absl::MutexLock lock(&mu_);
    applies_.push_front(std::move(apply));
    help_ends_ = absl::InfinitePast();
    return;
  }
  if (!status.ok()) {
    // Clients come again for room, and none will be made.
    const absl::StatusCode code = absl::IsResourceExhausted(status)
                                      ? absl::StatusCode::kAborted
                                      : status.code();
    return Fail(absl::Status(
        code, absl::StrCat("training has ended: step ", apply.version,
                           " failed: ", status.message())));
  }
  std::vector<Gradients> dropped;  // destroyed without the lock
  Due due;
  {
    absl::MutexLock lock(&mu_);
    dropped = held_.Drop(apply.pushes);
    HandleLocked(coordinator_->Applied(apply.policy, SteadyNow()), &due);
  }
  Run(due);
}

absl::Status Server::ApplyWhenThereIsMemory(const Coordinator::Apply& apply,
                                            absl::Span<Gradients* const> pushes,
                                            Tables* tables) {
  const absl::Time limit = SteadyNow() + options_.max_wait;
  while (true) {
    absl::Status status = tables->Apply(apply.policy, pushes, RowNow());
    if (!absl::IsResourceExhausted(status)) return status;
    absl::MutexLock lock(&mu_);
    const absl::Time again = SteadyNow() + kMemoryInterval;
    if (again > limit || state_ == State::kDraining) return status;
    while (!stop_ && SteadyNow() < again) wake_thread_.WaitUntil(&mu_, again);
  }
}

void Server::Fail(const absl::Status& status) {
  Due due;
  {
    absl::MutexLock lock(&mu_);
    if (state_ != State::kServing) return;
    failure_ = status;
    state_ = State::kFailed;
    EndSnapshotsLocked(status, &due);
    HandleLocked(coordinator_->Drain(), &due);
  }
  Log({std::string(status.message())});
  Run(due);
}

void Server::Tick() {
  const absl::Time now = SteadyNow();
  std::shared_ptr<Training> training;
  Due due;
  {
    absl::MutexLock lock(&mu_);
    while (!pending_ready_.empty() &&
           pending_ready_.begin()->second.deadline <= now) {
      const auto first = pending_ready_.begin();
      due.push_back([callback = std::move(first->second.callback)] {
        callback(absl::DeadlineExceededError(
            "worker 0 has not initialised the variables"));
      });
      pending_ready_.erase(first);
    }
    if (coordinator_.has_value()) HandleLocked(coordinator_->Tick(now), &due);
    if (now >= next_maintenance_) {
      training = training_;
      next_maintenance_ = now + kMaintenanceInterval;
    }
  }
  Run(due);
  if (training != nullptr) Maintain(training->tables.get());
}

// A disk may fail while nobody pushes: a pull finds that, and here it ends the
// training.
void Server::Maintain(Tables* tables) {
  if (tables->Maintain(RowNow())) {
    absl::MutexLock lock(&mu_);
    next_maintenance_ = SteadyNow() + kNextMaintenance;
  }
  const absl::Status tiers = tables->CheckTiers();
  if (tiers.ok()) return;
  Fail(absl::Status(tiers.code(),
                    absl::StrCat("training has ended: ", tiers.message())));
}

absl::optional<uint64_t> Server::VersionLocked() const {
  absl::optional<uint64_t> version;
  for (size_t at = 0; at < coordinator_->policies(); ++at) {
    const ConsistencyPolicy& policy = coordinator_->policy(at);
    if (!policy.synchronous()) continue;
    version = std::min(version.value_or(kMaxClock), policy.version());
  }
  return version;
}

// Due: it can be taken, or never can.
bool Server::IsDueLocked(const PendingSnapshot& snapshot) const {
  if (!snapshot.version.has_value()) return true;
  const absl::optional<uint64_t> version = VersionLocked();
  return !version.has_value() || *version >= *snapshot.version;
}

void Server::TakeSnapshots() {
  Due due;
  {
    absl::MutexLock lock(&mu_);
    for (auto it = pending_snapshots_.begin();
         it != pending_snapshots_.end();) {
      if (!IsDueLocked(it->second)) {
        ++it;
        continue;
      }
      due.push_back([this, pending = std::move(it->second),
                     training = training_, version = VersionLocked(),
                     clocks = coordinator_->AppliedClocks()] {
        pending.callback(Snapshot(pending, *training->tables, version, clocks));
      });
      it = pending_snapshots_.erase(it);
    }
  }
  Run(due);
}

void Server::EndSnapshotsLocked(const absl::Status& why, Due* due) {
  for (auto& [ticket, snapshot] : pending_snapshots_) {
    due->push_back(
        [callback = std::move(snapshot.callback), why] { callback(why); });
  }
  pending_snapshots_.clear();
}

absl::StatusOr<ModelSnapshot> Server::Snapshot(
    const PendingSnapshot& wanted, Tables& tables,
    absl::optional<uint64_t> version, const std::vector<RankClock>& clocks) {
  if (wanted.version.has_value() && version.has_value() &&
      *version > *wanted.version) {
    return absl::OutOfRangeError(
        absl::StrCat("the server has done step ", *version, ", not ",
                     *wanted.version, " any more: ask for a later one"));
  }
  ModelSnapshot snapshot;
  snapshot.clocks = clocks;
  for (size_t i = 0; i < tables.parts().size(); ++i) {
    snapshot.parts.push_back(tables.part(i).TakeSnapshot());
  }
  for (size_t i = 0; i < tables.model().rows().size(); ++i) {
    auto rows = tables.table(i).BeginSnapshot(i < wanted.options.size()
                                                  ? wanted.options[i]
                                                  : sparse::SnapshotOptions());
    if (!rows.ok()) return rows.status();
    snapshot.tables.push_back({tables.sparse_steps(i), *std::move(rows)});
  }
  return snapshot;
}

absl::StatusOr<ModelSnapshot> Server::TakeSnapshot(
    absl::optional<uint64_t> version, const SparseSnapshotOptions& options,
    absl::Duration timeout,
    const std::function<void(uint64_t ticket)>& on_wait) {
  // Outlives the wait, if that ends before the answer.
  struct Result {
    absl::Notification is_there;
    absl::StatusOr<ModelSnapshot> snapshot;
  };
  auto result = std::make_shared<Result>();
  uint64_t ticket = 0;
  {
    absl::MutexLock lock(&mu_);
    absl::Status status = CheckServingLocked();
    if (!status.ok()) return status;
    ticket = next_ticket_++;
    pending_snapshots_[ticket] = {
        version, options, [result](absl::StatusOr<ModelSnapshot> snapshot) {
          result->snapshot = std::move(snapshot);
          result->is_there.Notify();
        }};
    wake_thread_.Signal();
  }
  if (on_wait) on_wait(ticket);
  if (!result->is_there.WaitForNotificationWithTimeout(timeout)) {
    absl::MutexLock lock(&mu_);
    if (pending_snapshots_.erase(ticket) > 0) {
      return absl::DeadlineExceededError(
          absl::StrCat("checkpoint: step ", version.value_or(0),
                       " was not done within ", absl::FormatDuration(timeout)));
    }
  }
  result->is_there.WaitForNotification();
  return std::move(result->snapshot);
}

PushCounts Server::push_counts() const {
  absl::MutexLock lock(&mu_);
  return counts_;
}

ServerReport Server::report() const {
  ServerReport report;
  std::shared_ptr<Training> training;
  {
    absl::MutexLock lock(&mu_);
    report.pushes = counts_;
    report.held_bytes = held_.bytes() + pending_bytes_;
    report.held_bytes_limit = options_.max_held_bytes;
    report.expected_workers = options_.membership.expected_workers;
    report.failure = std::string(failure_.message());
    training = training_;
    if (training == nullptr) return report;
    report.restored_step = restored_step_;
    report.version = VersionLocked().value_or(0);
    const Membership& members = coordinator_->membership();
    report.live_workers = static_cast<uint32_t>(members.size());
    report.workers_lost = members.lost();
    for (const RankClock& rank : members.Clocks()) {
      report.workers.push_back(
          {rank.worker.rank, rank.clock, members.HasMember(rank.worker.rank)});
    }
  }
  uint64_t most = 0;
  for (const WorkerReport& each : report.workers) {
    most = std::max(most, each.clock);
  }
  for (WorkerReport& each : report.workers) each.behind = most - each.clock;
  report.run = training->run;
  report.epoch = training->tables->placement().epoch();
  report.server = training->server;
  report.servers =
      static_cast<uint32_t>(training->tables->placement().servers().size());
  report.has_values = training->tables->has_values();
  report.tables = training->tables->Report();
  return report;
}

}  // namespace penstock::ps
