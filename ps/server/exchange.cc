#include "ps/server/exchange.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "ps/server/refusals.h"

namespace penstock::ps {
namespace {

bool HasSynchronousTable(const Model& model) {
  return std::any_of(
      model.tables.begin(), model.tables.end(),
      [](const TableSpec& table) { return table.staleness == 0; });
}

}  // namespace

using base::SteadyNow;
using Verdict = Coordinator::Verdict;

absl::StatusOr<std::shared_ptr<Exchange>> Exchange::Create(
    const Options& options, std::shared_ptr<const Training> training,
    const RestoredModel& restored, const RowClock* clock, Steps* steps) {
  Coordinator::Options calls = CoordinatorOptionsOf(*training, restored);
  const Membership::Options from_checkpoint = calls.membership;
  calls.membership = options.membership;
  calls.membership.floor = from_checkpoint.floor;
  calls.membership.clocks = from_checkpoint.clocks;
  calls.max_wait = options.max_wait;
  auto coordinator = Coordinator::Create(std::move(calls));
  if (!coordinator.ok()) return coordinator.status();
  return std::shared_ptr<Exchange>(new Exchange(
      options, std::move(training), *std::move(coordinator), clock, steps));
}

Exchange::Exchange(const Options& options,
                   std::shared_ptr<const Training> training,
                   Coordinator coordinator, const RowClock* clock, Steps* steps)
    : options_(options),
      training_(std::move(training)),
      is_synchronous_(HasSynchronousTable(training_->tables->model().model())),
      clock_(clock),
      steps_(steps),
      coordinator_(std::move(coordinator)),
      room_(options.max_held_bytes),
      snapshots_(
          is_synchronous_, &coordinator_, steps,
          [this](uint64_t ticket, absl::StatusOr<ModelSnapshot> snapshot) {
            OnSnapshot(ticket, std::move(snapshot));
          }) {}

absl::StatusOr<Exchange::Joined> Exchange::Join(const WorkerId& worker) {
  Due due;
  Outcome outcome;
  {
    absl::MutexLock lock(&mu_);
    if (!failure_.ok()) return failure_;
    outcome = coordinator_.Join(worker, SteadyNow());
    HandleLocked(outcome, &due);
  }
  Run(due);
  absl::Status status = Refusal(outcome.verdict, worker, "join");
  if (!status.ok()) return status;
  return Joined{options_.membership.lease, outcome.clock};
}

absl::Status Exchange::Heartbeat(const WorkerId& worker) {
  Due due;
  Outcome outcome;
  {
    absl::MutexLock lock(&mu_);
    if (!failure_.ok()) return failure_;
    outcome = coordinator_.Heartbeat(worker, SteadyNow());
    HandleLocked(outcome, &due);
  }
  Run(due);
  return Refusal(outcome.verdict, worker, "heartbeat");
}

void Exchange::Leave(const WorkerId& worker) {
  Due due;
  {
    absl::MutexLock lock(&mu_);
    HandleLocked(coordinator_.Leave(worker), &due);
  }
  Run(due);
}

void Exchange::Lost(const WorkerId& worker) {
  Due due;
  {
    absl::MutexLock lock(&mu_);
    HandleLocked(coordinator_.Lost(worker), &due);
  }
  Run(due);
}

bool Exchange::IsSuperseded(const WorkerId& worker) const {
  absl::MutexLock lock(&mu_);
  return coordinator_.membership().StandingOf(worker) ==
         Membership::Standing::kSuperseded;
}

std::vector<Gradients*> Exchange::GradientsOf(const Coordinator::Apply& apply) {
  absl::MutexLock lock(&mu_);
  return held_.Of(apply.pushes);
}

void Exchange::OnApplied(const Coordinator::Apply& apply) {
  std::vector<Gradients> dropped;  // destroyed without the lock
  Due due;
  {
    absl::MutexLock lock(&mu_);
    dropped = held_.Drop(apply.pushes);
    HandleLocked(coordinator_.Applied(apply.policy, SteadyNow()), &due);
  }
  Run(due);
}

void Exchange::OnFailed(const absl::Status& why) {
  Due due;
  {
    absl::MutexLock lock(&mu_);
    if (is_draining_ || !failure_.ok()) return;
    FailLocked(why, &due);
  }
  LogLines(options_.log, {std::string(why.message())});
  Run(due);
}

void Exchange::FailLocked(const absl::Status& why, Due* due) {
  failure_ = why;
  steps_->End();
  HandleLocked(snapshots_.RemoveAll(why, due), due);
  HandleLocked(coordinator_.Drain(), due);
}

void Exchange::OnDeadline() {
  Due due;
  {
    absl::MutexLock lock(&mu_);
    const absl::Time now = SteadyNow();
    if (snapshots_.hold_ends() <= now) HandleLocked(snapshots_.Release(), &due);
    HandleLocked(coordinator_.Tick(now), &due);
  }
  Run(due);
}

void Exchange::Drain() {
  Due due;
  {
    absl::MutexLock lock(&mu_);
    if (is_draining_) return;
    is_draining_ = true;
    HandleLocked(snapshots_.RemoveAll(Draining(), &due), &due);
    HandleLocked(coordinator_.Drain(), &due);
  }
  Run(due);
}

void Exchange::Run(const Due& due) {
  for (const auto& callback : due) callback();
}

absl::Status Exchange::failure() const {
  absl::MutexLock lock(&mu_);
  return failure_;
}

PushCounts Exchange::push_counts() const {
  absl::MutexLock lock(&mu_);
  return counts_;
}

absl::optional<uint64_t> Exchange::VersionLocked() const {
  absl::optional<uint64_t> version;
  for (size_t at = 0; at < coordinator_.policies(); ++at) {
    const ConsistencyPolicy& policy = coordinator_.policy(at);
    if (!policy.synchronous()) continue;
    version = std::min(version.value_or(kMaxClock), policy.version());
  }
  return version;
}

void Exchange::Report(ServerReport* report) const {
  {
    absl::MutexLock lock(&mu_);
    report->pushes = counts_;
    report->held_bytes = held_.bytes() + pending_bytes_;
    report->failure = std::string(failure_.message());
    report->version = VersionLocked().value_or(0);
    const Membership& members = coordinator_.membership();
    report->live_workers = static_cast<uint32_t>(members.size());
    report->workers_lost = members.lost();
    for (const RankClock& rank : members.Clocks()) {
      report->workers.push_back({rank.worker.rank, rank.clock,
                                 members.HasMember(rank.worker.rank), 0,
                                 members.PushedClockOf(rank.worker.rank)});
    }
  }
  uint64_t most = 0;
  for (const WorkerReport& each : report->workers) {
    most = std::max(most, each.clock);
  }
  for (WorkerReport& each : report->workers) each.behind = most - each.clock;
}

}  // namespace penstock::ps
