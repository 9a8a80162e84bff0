#include "ps/server/exchange.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ps/server/parts.h"
#include "ps/server/refusals.h"
#include "ps/server/running_time.h"
#include "tensor_service/tensor.h"

namespace penstock::ps {
namespace {

// A lower bound for the speed of a push, in bytes per second. A link of 1
// Gbit/s is four times as fast, which leaves a reserve for an overloaded
// machine.
constexpr double kSlowestPush = 32 << 20;

// Returns the bytes of a gradient of all dense values.
size_t DenseBytesOf(const Tables& tables) {
  size_t bytes = 0;
  for (const Part& part : tables.parts()) {
    bytes += ElementsOf(part) * tensor::ElementSize(part.dtype);
  }
  return bytes;
}

// Returns the lease of a worker that pushes to `tables`: `base` plus the time
// of a push of all dense values, because heartbeats use the same connection and
// may wait behind a push.
absl::Duration LeaseFor(const Tables& tables, absl::Duration base) {
  const double seconds =
      static_cast<double>(DenseBytesOf(tables)) / kSlowestPush;
  return base + absl::Trunc(absl::Seconds(seconds), absl::Milliseconds(1));
}

// Returns the oldest version of the synchronous tables, or 0 if there are none.
uint64_t VersionOf(const Coordinator& coordinator) {
  absl::optional<uint64_t> version;
  for (size_t at = 0; at < coordinator.policies(); ++at) {
    const ConsistencyPolicy& policy = coordinator.policy(at);
    if (!policy.synchronous()) continue;
    version = std::min(version.value_or(kMaxClock), policy.version());
  }
  return version.value_or(0);
}

}  // namespace

bool HasAppliedSteps(const Coordinator& coordinator) {
  for (size_t at = 0; at < coordinator.policies(); ++at) {
    const ConsistencyPolicy& policy = coordinator.policy(at);
    if (policy.synchronous() &&
        policy.state() == ConsistencyPolicy::State::kApplying) {
      return false;
    }
  }
  return true;
}

using Verdict = Coordinator::Verdict;

absl::StatusOr<std::shared_ptr<Exchange>> Exchange::Create(
    const Options& given, std::shared_ptr<const Training> training,
    const RestoredModel& restored, const RowClock* clock, Steps* steps) {
  Options options = given;
  options.membership.lease =
      LeaseFor(*training->tables, given.membership.lease);
  Coordinator::Options calls = CoordinatorOptionsOf(*training, restored);
  const Membership::Options from_checkpoint = calls.membership;
  calls.membership = options.membership;
  calls.membership.floor = from_checkpoint.floor;
  calls.membership.clocks = from_checkpoint.clocks;
  if (restored.members.has_value()) {
    calls.membership.image = restored.members->membership;
  }
  calls.max_wait = options.max_wait;
  auto coordinator = Coordinator::Create(std::move(calls));
  if (!coordinator.ok()) return coordinator.status();
  std::shared_ptr<Exchange> exchange(new Exchange(
      options, std::move(training), *std::move(coordinator), clock, steps));
  if (!restored.members.has_value()) return exchange;
  base::SteadyMutexLock lock(&exchange->mu_);
  for (const RankClock& each : restored.members->counted) {
    exchange->last_counted_[each.worker.rank] = each;
  }
  exchange->counts_ = restored.members->counts;
  return exchange;
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
          options.closes_cuts, &coordinator_, steps,
          [this](uint64_t ticket, absl::StatusOr<ModelSnapshot> snapshot) {
            OnSnapshot(ticket, std::move(snapshot));
          }) {}

MembersImage Exchange::Members() const {
  base::SteadyMutexLock lock(&mu_);
  MembersImage members;
  members.membership = coordinator_.membership().Image();
  for (const auto& [rank, last] : last_counted_) {
    members.counted.push_back(last);
  }
  members.counts = counts_;
  return members;
}

void Exchange::Carry(const Event& event) {
  Due due;
  {
    base::SteadyMutexLock lock(&mu_);
    if (!failure_.ok()) return;
    HandleLocked(event(&coordinator_), &due);
  }
  RunAll(due);
}

bool Exchange::Await(const Condition& is_true, absl::Duration timeout) const {
  base::SteadyMutexLock lock(&mu_);
  const auto is_over = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return is_true(coordinator_) || !failure_.ok() || is_draining_;
  };
  return mu_.AwaitFor(timeout, is_over);
}

absl::Status Exchange::CheckMember(const WorkerId& worker,
                                   absl::string_view call) const {
  base::SteadyMutexLock lock(&mu_);
  if (!failure_.ok()) return failure_;
  const auto refused = coordinator_.Refuses(worker, 0);
  return Refusal(refused.value_or(Verdict::kAccepted), worker, call);
}

absl::StatusOr<Exchange::Joined> Exchange::Join(const WorkerId& worker) {
  Due due;
  Outcome outcome;
  {
    base::SteadyMutexLock lock(&mu_);
    if (!failure_.ok()) return failure_;
    outcome = coordinator_.Join(worker, RunningNow());
    HandleLocked(outcome, &due);
  }
  RunAll(due);
  absl::Status status = Refusal(outcome.verdict, worker, "join");
  if (!status.ok()) return status;
  return Joined{options_.membership.lease, outcome.clock};
}

absl::Status Exchange::Heartbeat(const WorkerId& worker) {
  Due due;
  Outcome outcome;
  {
    base::SteadyMutexLock lock(&mu_);
    if (!failure_.ok()) return failure_;
    outcome = coordinator_.Heartbeat(worker, RunningNow());
    HandleLocked(outcome, &due);
  }
  RunAll(due);
  return Refusal(outcome.verdict, worker, "heartbeat");
}

void Exchange::Leave(const WorkerId& worker) {
  Due due;
  {
    base::SteadyMutexLock lock(&mu_);
    HandleLocked(coordinator_.Leave(worker), &due);
  }
  RunAll(due);
}

void Exchange::Lost(const WorkerId& worker) {
  Due due;
  {
    base::SteadyMutexLock lock(&mu_);
    HandleLocked(coordinator_.Lost(worker), &due);
  }
  RunAll(due);
}

std::vector<Gradients*> Exchange::GradientsOf(const Coordinator::Apply& apply) {
  base::SteadyMutexLock lock(&mu_);
  return held_.Of(apply.pushes);
}

void Exchange::OnApplied(const Coordinator::Apply& apply) {
  std::vector<Gradients> dropped;  // destroyed without the lock
  Due due;
  {
    base::SteadyMutexLock lock(&mu_);
    dropped = held_.Drop(apply.pushes);
    HandleLocked(coordinator_.Applied(apply.policy, RunningNow()), &due);
  }
  RunAll(due);
}

void Exchange::OnFailed(const absl::Status& why) {
  Due due;
  {
    base::SteadyMutexLock lock(&mu_);
    if (is_draining_ || !failure_.ok()) return;
    FailLocked(why, &due);
  }
  LogLines(options_.log, {std::string(why.message())});
  RunAll(due);
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
    base::SteadyMutexLock lock(&mu_);
    if (snapshots_.hold_ends() <= base::SteadyNow()) {
      HandleLocked(snapshots_.Release(), &due);
    }
    HandleLocked(coordinator_.Tick(RunningNow()), &due);
  }
  RunAll(due);
}

void Exchange::Drain() {
  Due due;
  {
    base::SteadyMutexLock lock(&mu_);
    if (is_draining_) return;
    is_draining_ = true;
    HandleLocked(snapshots_.RemoveAll(Draining(), &due), &due);
    HandleLocked(coordinator_.Drain(), &due);
  }
  RunAll(due);
}

absl::Status Exchange::failure() const {
  base::SteadyMutexLock lock(&mu_);
  return failure_;
}

PushCounts Exchange::push_counts() const {
  base::SteadyMutexLock lock(&mu_);
  return counts_;
}

void Exchange::Report(ServerReport* report) const {
  {
    base::SteadyMutexLock lock(&mu_);
    report->pushes = counts_;
    report->held_bytes = held_.bytes() + pending_bytes_;
    report->failure = std::string(failure_.message());
    report->version = VersionOf(coordinator_);
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
