// A server's life: what it is defined as, who is a member, its end.

#include "ps/server/server.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ps/model/wire.h"
#include "ps/server/checkpoint_model.h"
#include "ps/server/refusals.h"
#include "transport/base/log.h"
#include "transport/base/printable.h"

namespace penstock::ps {

using base::SteadyNow;

Server::Server(const Options& options)
    : options_(options),
      row_epoch_(absl::Now() - (SteadyNow() - absl::UnixEpoch())),
      thread_([this] { ThreadLoop(); }) {}

Server::~Server() {
  Drain();
  {
    absl::MutexLock lock(&mu_);
    stop_ = true;
    wake_thread_.Signal();
  }
  thread_.join();
}

absl::Time Server::RowNow() const {
  return row_epoch_ + (SteadyNow() - absl::UnixEpoch());
}

absl::StatusOr<Server::Defined> Server::Define(const Definition& definition) {
  absl::MutexLock one_at_a_time(&define_mu_);
  if (training() != nullptr) {
    absl::Status same = CheckSame(definition);
    if (!same.ok()) return same;
    absl::MutexLock lock(&mu_);
    return Defined{false, training_->run, state_ == State::kDefined,
                   restored_step_};
  }
  auto training = MakeTraining(definition);
  if (!training.ok()) return training.status();
  RestoredModel restored;
  if (options_.restore) {
    auto found =
        options_.restore(definition.restore_step, (*training)->tables.get());
    if (found.ok()) {
      restored = *std::move(found);
    } else if (!absl::IsNotFound(found.status())) {
      return found.status();
    } else {
      training = MakeTraining(definition);  // whatever was put into it
      if (!training.ok()) return training.status();
    }
  }
  absl::Status begun = Begin(*std::move(training), restored);
  if (!begun.ok()) return begun;
  return Defined{true, definition.run, !has_values(), restored.step};
}

absl::StatusOr<std::shared_ptr<Server::Training>> Server::MakeTraining(
    const Definition& definition) const {
  if (definition.run == 0) {
    return absl::InvalidArgumentError("define: run is 0; draw one at random");
  }
  absl::Status status = CheckModel(definition.model);
  if (!status.ok()) return status;
  std::vector<TableLayout> layouts;
  for (const TableSpec& table : definition.model.tables) {
    auto layout = LayoutOf(table);
    if (!layout.ok()) return layout.status();
    layouts.push_back(*std::move(layout));
  }
  auto placement = PlacementMap::Make(layouts, definition.servers, {});
  if (!placement.ok()) return placement.status();
  auto tables = Tables::Create(
      definition.model,
      std::make_shared<const PlacementMap>(*std::move(placement)),
      definition.server, options_.tables);
  if (!tables.ok()) return tables.status();
  status = CheckHeldBytes(**tables);
  // Nobody is to find out at the first checkpoint.
  if (status.ok()) status = CheckpointModelOf(definition.model).status();
  if (!status.ok()) return status;
  auto training = std::make_shared<Training>();
  training->run = definition.run;
  training->server = definition.server;
  training->tables = *std::move(tables);
  return training;
}

// A synchronous step needs the gradients of all workers at a time.
absl::Status Server::CheckHeldBytes(const Tables& tables) const {
  size_t bytes = 0;
  for (const Part& part : tables.parts()) {
    if (tables.model().policies()[part.policy].staleness != 0) continue;
    auto size = tensor::ByteSize(part.dtype, part.shape);
    if (size.ok()) bytes += *size;
  }
  const uint32_t workers = options_.membership.expected_workers;
  if (bytes <= options_.max_held_bytes / workers) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "define: a synchronous step holds the gradients of ", workers,
      " workers, of ", bytes, " bytes each, and this server may hold ",
      options_.max_held_bytes,
      " bytes of gradients: add servers, or raise --held-gradients"));
}

absl::Status Server::CheckSame(const Definition& definition) const {
  const std::shared_ptr<const Training> ours = training();
  const PlacementMap& placement = ours->tables->placement();
  std::string difference =
      Difference(ours->tables->model().model(), definition.model);
  if (difference.empty() && definition.servers != placement.servers()) {
    difference = absl::StrCat("its servers are ",
                              absl::StrJoin(placement.servers(), ", "));
  }
  if (difference.empty() && definition.server != ours->server) {
    difference = absl::StrCat("it is server ", ours->server);
  }
  if (difference.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("define: this server trains another model: ",
                   base::Printable(difference, 1000),
                   "; start the servers anew to train this one"));
}

absl::Status Server::Begin(std::shared_ptr<Training> training,
                           const RestoredModel& restored) {
  Coordinator::Options options;
  options.membership = options_.membership;
  options.membership.clocks = restored.clocks;
  options.policies = training->tables->model().policies();
  options.max_wait = options_.max_wait;
  uint64_t highest = 0;
  uint64_t lowest =
      restored.clocks.empty() ? 0 : std::numeric_limits<uint64_t>::max();
  for (const RankClock& rank : restored.clocks) {
    highest = std::max(highest, rank.clock);
    lowest = std::min(lowest, rank.clock);
  }
  options.membership.floor = lowest;
  for (ConsistencyPolicy::Options& policy : options.policies) {
    // The step that the one who had come farthest was to do next.
    if (policy.staleness == 0) policy.version = highest;
  }
  auto coordinator = Coordinator::Create(std::move(options));
  if (!coordinator.ok()) return coordinator.status();
  Due due;
  {
    absl::MutexLock lock(&mu_);
    if (state_ == State::kDraining) return Draining();
    coordinator_.emplace(*std::move(coordinator));
    training_ = std::move(training);
    has_small_steps_ = HasSmallSteps(*training_->tables);
    restored_step_ = restored.step;
    state_ = State::kDefined;
    if (training_->tables->has_values()) BecomeReadyLocked(&due);
  }
  Run(due);
  return absl::OkStatus();
}

void Server::BecomeReadyLocked(Due* due) {
  state_ = State::kServing;
  for (auto& [ticket, ready] : pending_ready_) {
    due->push_back(
        [callback = std::move(ready.callback)] { callback(absl::OkStatus()); });
  }
  pending_ready_.clear();
}

absl::Status Server::CheckView(const View& view) const {
  absl::MutexLock lock(&mu_);
  return CheckViewLocked(view);
}

absl::StatusOr<std::vector<RankClock>> Server::AppliedClocks() const {
  absl::MutexLock lock(&mu_);
  absl::Status status = CheckServingLocked();
  if (!status.ok()) return status;
  return coordinator_->AppliedClocks();
}

std::shared_ptr<const Server::Training> Server::training() const {
  absl::MutexLock lock(&mu_);
  return training_;
}

bool Server::has_values() const {
  absl::MutexLock lock(&mu_);
  return training_ != nullptr && training_->tables->has_values();
}

uint64_t Server::AwaitValues(ReadyCallback callback) {
  absl::Status status;
  uint64_t ticket = 0;
  {
    absl::MutexLock lock(&mu_);
    ticket = next_ticket_++;
    const bool waits = state_ == State::kEmpty || state_ == State::kDefined;
    if (waits && pending_ready_.size() >= options_.max_waiting_calls) {
      status = TooManyWait(pending_ready_.size());
    } else if (waits) {
      pending_ready_[ticket] = {std::move(callback),
                                SteadyNow() + options_.max_wait};
      wake_thread_.Signal();
      return ticket;
    } else {
      status = CheckServingLocked();
    }
  }
  callback(status);
  return ticket;
}

absl::Status Server::CheckViewLocked(const View& view) const {
  if (state_ == State::kDraining) return Draining();
  if (training_ == nullptr) return HasNoModel(view.run);
  if (view.run != training_->run) return OtherRun(view.run, training_->run);
  return training_->tables->placement().CheckEpoch(view.epoch);
}

absl::Status Server::CheckServingLocked() const {
  switch (state_) {
    case State::kServing:
      return absl::OkStatus();
    case State::kEmpty:
    case State::kDefined:
      return absl::FailedPreconditionError(
          "worker 0 has not initialised the variables; GetModel() can wait for "
          "that");
    case State::kFailed:
      return failure_;
    case State::kDraining:
      return Draining();
  }
  return Draining();
}

absl::StatusOr<std::shared_ptr<Server::Training>> Server::ServingLocked(
    const View& view) const {
  absl::Status status = CheckViewLocked(view);
  if (status.ok()) status = CheckServingLocked();
  if (!status.ok()) return status;
  return training_;
}

absl::StatusOr<Server::Joined> Server::Join(const View& view,
                                            const WorkerId& worker) {
  Due due;
  Outcome outcome;
  {
    absl::MutexLock lock(&mu_);
    absl::Status status = CheckViewLocked(view);
    if (status.ok() && state_ == State::kFailed) status = failure_;
    if (!status.ok()) return status;
    outcome = coordinator_->Join(worker, SteadyNow());
    HandleLocked(outcome, &due);
  }
  Run(due);
  absl::Status status = Refusal(outcome.verdict, worker, "join");
  if (!status.ok()) return status;
  return Joined{options_.membership.lease, outcome.clock};
}

absl::Status Server::Heartbeat(uint64_t run, const WorkerId& worker) {
  Due due;
  Outcome outcome;
  {
    absl::MutexLock lock(&mu_);
    if (state_ == State::kDraining) return Draining();
    if (training_ == nullptr) return HasNoModel(run);
    if (run != training_->run) return OtherRun(run, training_->run);
    if (state_ == State::kFailed) return failure_;
    outcome = coordinator_->Heartbeat(worker, SteadyNow());
    HandleLocked(outcome, &due);
  }
  Run(due);
  return Refusal(outcome.verdict, worker, "heartbeat");
}

void Server::Leave(const WorkerId& worker) {
  Due due;
  {
    absl::MutexLock lock(&mu_);
    if (!coordinator_.has_value()) return;
    HandleLocked(coordinator_->Leave(worker), &due);
  }
  Run(due);
}

void Server::Lost(const WorkerId& worker) {
  Due due;
  {
    absl::MutexLock lock(&mu_);
    if (!coordinator_.has_value()) return;
    HandleLocked(coordinator_->Lost(worker), &due);
  }
  Run(due);
}

absl::StatusOr<bool> Server::Initialize(const View& view,
                                        const WorkerId& worker,
                                        const tensor::Bundle& values) {
  if (worker.rank != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("initialize from worker ", worker.rank,
                     ": only worker 0, the chief, may"));
  }
  std::shared_ptr<Training> training;
  {
    absl::MutexLock lock(&mu_);
    absl::Status status = CheckViewLocked(view);
    // One that has not joined may, unless another has.
    if (status.ok() && coordinator_->membership().StandingOf(worker) ==
                           Membership::Standing::kSuperseded) {
      status = Refusal(Coordinator::Verdict::kSuperseded, worker, "initialize");
    }
    if (!status.ok()) return status;
    if (state_ != State::kDefined) return false;
    training = training_;
  }
  absl::Status taken = training->tables->Initialize(values);
  if (!taken.ok()) {
    const std::string refusal = absl::StrCat(
        "initialize from worker ", worker.rank, ": ", taken.message());
    Log({refusal});
    return absl::Status(taken.code(), refusal);
  }
  Due due;
  {
    absl::MutexLock lock(&mu_);
    if (state_ == State::kDefined && training->tables->has_values()) {
      BecomeReadyLocked(&due);
    }
  }
  Run(due);
  return true;
}

void Server::Drain() {
  Due due;
  {
    absl::MutexLock lock(&mu_);
    if (state_ == State::kDraining) return;
    state_ = State::kDraining;
    for (auto& [ticket, ready] : pending_ready_) {
      due.push_back(
          [callback = std::move(ready.callback)] { callback(Draining()); });
    }
    pending_ready_.clear();
    EndSnapshotsLocked(Draining(), &due);
    if (coordinator_.has_value()) HandleLocked(coordinator_->Drain(), &due);
  }
  Run(due);
}

void Server::Run(const Due& due) {
  for (const auto& callback : due) callback();
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
