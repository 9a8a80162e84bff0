#include "ps/server.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "transport/base/log.h"
#include "transport/base/printable.h"
#include "transport/base/steady_time.h"

namespace penstock::ps {
namespace {

using EventKind = SyncBarrier::EventKind;
using State = SyncBarrier::State;
using Verdict = SyncBarrier::Verdict;

absl::Status Draining() {
  return absl::UnavailableError("parameter server is shutting down");
}

absl::Status Superseded(uint32_t rank) {
  return absl::AbortedError(absl::StrCat(
      "worker ", rank, " has been started anew; this one must stop"));
}

}  // namespace

Server::Server(const Options& options, std::unique_ptr<Optimizer> optimizer)
    : options_(options),
      optimizer_(std::move(optimizer)),
      barrier_(options.barrier),
      thread_([this] { ThreadLoop(); }) {}

Server::~Server() {
  Drain();
  {
    absl::MutexLock lock(&mu_);
    stop_ = true;
    wake_server_thread_.Signal();
  }
  thread_.join();
}

absl::StatusOr<uint64_t> Server::Join(MemberId member) {
  if (Feed({EventKind::kJoin, member}) == Verdict::kDraining) return Draining();
  absl::MutexLock lock(&mu_);
  return barrier_.version();
}

absl::Status Server::Heartbeat(MemberId member) {
  Verdict verdict = Feed({EventKind::kHeartbeat, member});
  if (verdict == Verdict::kDraining) return Draining();
  if (verdict == Verdict::kSuperseded) return Superseded(member.rank);
  return absl::OkStatus();
}

void Server::Leave(MemberId member) { Feed({EventKind::kLeave, member}); }

void Server::Lost(MemberId member) { Feed({EventKind::kLost, member}); }

absl::StatusOr<bool> Server::Initialize(MemberId member,
                                        const tensor::Bundle& values) {
  if (member.rank != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("initialize from worker ", member.rank,
                     ": only worker 0, the chief, may"));
  }
  absl::StatusOr<tensor::Bundle> kept = values.Compact();
  if (!kept.ok()) return kept.status();
  auto table = CheckValues(*kept);
  if (!table.ok()) {
    const absl::Status refusal(
        table.status().code(),
        absl::StrCat("initialize from worker ", member.rank, ": ",
                     table.status().message()));
    Log({std::string(refusal.message())});
    return refusal;
  }
  Due due;
  {
    absl::MutexLock lock(&mu_);
    if (barrier_.state() == State::kDraining) return Draining();
    if (table_ != nullptr) return false;
    table_ = *std::move(table);
    for (tensor::NamedTensor& value : kept->tensors) {
      values_.push_back(std::move(value.tensor));
    }
    CollectDueLocked(base::SteadyNow(), &due);
  }
  for (auto& callback : due) callback();
  return true;
}

absl::StatusOr<std::shared_ptr<const VariableTable>> Server::CheckValues(
    const tensor::Bundle& values) const {
  auto table = VariableTable::Create(values, *optimizer_);
  if (!table.ok()) return table;
  const size_t held = (*table)->held_bytes();
  if (held <= options_.max_variable_bytes) return table;
  return absl::ResourceExhaustedError(
      absl::StrCat("variables that hold ", held, " bytes exceed ",
                   "max_variable_bytes, ", options_.max_variable_bytes));
}

absl::StatusOr<GradientSet> Server::CheckPush(const tensor::Bundle& gradients) {
  std::shared_ptr<const VariableTable> table;
  {
    absl::MutexLock lock(&mu_);
    if (!failure_.ok()) return failure_;
    table = table_;
  }
  if (table == nullptr) {
    return absl::FailedPreconditionError(
        "push: worker 0 has not initialised the variables yet");
  }
  return table->Check(gradients);
}

absl::StatusOr<Server::PushResult> Server::Push(
    MemberId member, uint64_t step, const tensor::Bundle& gradients) {
  absl::StatusOr<GradientSet> set = CheckPush(gradients);
  if (!set.ok()) {
    {
      absl::MutexLock lock(&mu_);
      ++pushes_refused_;
    }
    Log({absl::StrCat("push of worker ", member.rank, " for step ", step,
                      " refused: ", set.status().message())});
    return set.status();
  }
  return Judge(Feed({EventKind::kPush, member, step}, &*set), member, step);
}

absl::StatusOr<Server::PushResult> Server::Judge(Verdict verdict,
                                                 const MemberId& member,
                                                 uint64_t step) {
  absl::MutexLock lock(&mu_);
  switch (verdict) {
    case Verdict::kAccepted:
      ++pushes_counted_;
      return PushResult{true, barrier_.version()};
    case Verdict::kDuplicate:
    case Verdict::kLate:
      ++pushes_not_counted_;
      return PushResult{false, barrier_.version()};
    case Verdict::kAhead:
      ++pushes_refused_;
      return absl::FailedPreconditionError(
          absl::StrCat("push of step ", step, ": the variables are at version ",
                       barrier_.version()));
    case Verdict::kNotMember:
      ++pushes_refused_;
      return absl::FailedPreconditionError(absl::StrCat(
          "push: worker ", member.rank,
          " is not a member; it never joined or its lease is over"));
    case Verdict::kSuperseded:
      ++pushes_refused_;
      return Superseded(member.rank);
    case Verdict::kDraining:
      return Draining();
  }
  return absl::InternalError("push: unknown verdict");
}

Verdict Server::Feed(const SyncBarrier::Event& event, GradientSet* gradients) {
  Due due;
  SyncBarrier::Outcome outcome;
  {
    absl::MutexLock lock(&mu_);
    absl::Time now = base::SteadyNow();
    outcome = barrier_.Handle(event, now);
    if (gradients != nullptr && outcome.verdict == Verdict::kAccepted) {
      gradients_[event.member.rank] = std::move(*gradients);
    }
    if (outcome.apply.has_value()) pending_apply_ = outcome.apply;
    CollectDueLocked(now, &due);
    wake_server_thread_.Signal();  // a step, or perhaps an earlier deadline
  }
  Log(outcome.notes);
  for (auto& callback : due) callback();
  return outcome.verdict;
}

void Server::ApplyUnlocked(const SyncBarrier::Apply& apply) {
  std::vector<GradientSet> sets;
  std::vector<tensor::Tensor> values;
  std::shared_ptr<const VariableTable> table;
  {
    absl::MutexLock lock(&mu_);
    for (uint32_t rank : apply.ranks) {
      sets.push_back(std::move(gradients_[rank]));
    }
    gradients_.clear();
    values.swap(values_);
    table = table_;
  }
  absl::Status status = ApplyStep(*table, sets, optimizer_.get(), &values);
  {
    absl::MutexLock lock(&mu_);
    values_.swap(values);
    if (!status.ok() && failure_.ok()) {
      failure_ = absl::Status(
          status.code(), absl::StrCat("training has ended: step ", apply.step,
                                      " failed: ", status.message()));
    }
  }
  if (!status.ok()) {
    Log({absl::StrCat("step ", apply.step, " failed: ", status.message())});
  }
  Feed({EventKind::kApplied, {}});
}

bool Server::IsDueLocked(const Waiter& waiter) const {
  if (!failure_.ok() || barrier_.state() == State::kDraining) return true;
  return table_ != nullptr && barrier_.state() != State::kApplying &&
         barrier_.version() >= waiter.spec.version;
}

absl::StatusOr<Server::Snapshot> Server::SnapshotLocked(
    const WaitSpec& spec) const {
  if (!failure_.ok()) return failure_;
  if (barrier_.state() == State::kDraining) return Draining();
  Snapshot snapshot{barrier_.version(), {}};
  if (!spec.want_variables) return snapshot;
  absl::StatusOr<std::vector<size_t>> positions = table_->Find(spec.names);
  if (!positions.ok()) return positions.status();
  for (size_t at : *positions) {
    snapshot.variables.tensors.push_back(
        {table_->specs()[at].name, values_[at]});
  }
  return snapshot;
}

absl::Status Server::TimeoutLocked(const WaitSpec& spec) const {
  if (table_ == nullptr) {
    return absl::DeadlineExceededError(
        "wait: worker 0 has not initialised the variables");
  }
  return absl::DeadlineExceededError(
      absl::StrCat("wait for version ", spec.version, ": still at ",
                   barrier_.version(), ", missing the pushes of workers ",
                   absl::StrJoin(barrier_.Missing(), ", ")));
}

void Server::CollectDueLocked(absl::Time now, Due* due) {
  for (auto it = waiters_.begin(); it != waiters_.end();) {
    Waiter& waiter = it->second;
    bool is_due = IsDueLocked(waiter);
    if (!is_due && waiter.deadline > now) {
      ++it;
      continue;
    }
    absl::StatusOr<Snapshot> result = TimeoutLocked(waiter.spec);
    if (is_due) result = SnapshotLocked(waiter.spec);
    due->push_back([callback = std::move(waiter.callback),
                    result = std::move(result)]() mutable {
      callback(std::move(result));
    });
    it = waiters_.erase(it);
  }
}

uint64_t Server::Wait(WaitSpec spec, WaitCallback callback) {
  Due due;
  uint64_t ticket;
  {
    absl::MutexLock lock(&mu_);
    absl::Time now = base::SteadyNow();
    ticket = next_ticket_++;
    waiters_[ticket] =
        Waiter{std::move(spec), std::move(callback), now + options_.max_wait};
    CollectDueLocked(now, &due);
    wake_server_thread_.Signal();
  }
  for (auto& run : due) run();
  return ticket;
}

void Server::Cancel(uint64_t ticket) {
  WaitCallback callback;
  {
    absl::MutexLock lock(&mu_);
    auto waiter = waiters_.find(ticket);
    if (waiter == waiters_.end()) return;
    callback = std::move(waiter->second.callback);
    waiters_.erase(waiter);
  }
  callback(absl::CancelledError("wait: the caller has given up"));
}

void Server::Drain() { Feed({EventKind::kDrain, {}}); }

absl::Time Server::NextDeadlineLocked() const {
  absl::Time next = barrier_.NextDeadline();
  for (const auto& waiter : waiters_) {
    next = std::min(next, waiter.second.deadline);
  }
  return next;
}

void Server::ThreadLoop() {
  while (true) {
    absl::optional<SyncBarrier::Apply> apply;
    {
      absl::MutexLock lock(&mu_);
      absl::Time next = NextDeadlineLocked();
      while (!stop_ && !pending_apply_.has_value() &&
             base::SteadyNow() < next) {
        wake_server_thread_.WaitUntil(&mu_, next);
        next = NextDeadlineLocked();
      }
      if (stop_) return;
      apply.swap(pending_apply_);
    }
    if (apply.has_value()) {
      ApplyUnlocked(*apply);
    } else {
      Feed({EventKind::kTick, {}});
    }
  }
}

Server::Report Server::report() const {
  absl::MutexLock lock(&mu_);
  Report report;
  report.initialized = table_ != nullptr;
  report.version = barrier_.version();
  report.live_workers = static_cast<uint32_t>(barrier_.live_members());
  report.workers_lost = barrier_.members_lost();
  report.pushes_counted = pushes_counted_;
  report.pushes_not_counted = pushes_not_counted_;
  report.pushes_refused = pushes_refused_;
  report.variable_bytes = table_ == nullptr ? 0 : table_->byte_size();
  return report;
}

void Server::Log(const std::vector<std::string>& notes) const {
  for (const std::string& note : notes) {
    // Notes may contain names that a worker has chosen.
    const std::string line = base::Printable(note, base::kMaxLogLineBytes);
    if (options_.log) {
      options_.log(line);
    } else {
      base::LogInfo("ps: " + line);
    }
  }
}

}  // namespace penstock::ps
