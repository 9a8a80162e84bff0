// The beginning of a training: define, restore and initialize.

#include <utility>

#include "absl/strings/str_cat.h"
#include "ps/server/refusals.h"
#include "ps/server/server.h"
#include "transport/base/steady_time.h"

namespace penstock::ps {
namespace {

using base::SteadyNow;

// Checks that a server with this source, which may be null, can begin with
// `cut`.
absl::Status CheckCut(RestoreSource* restore,
                      const absl::optional<CutId>& cut) {
  if (restore != nullptr) return restore->Check(cut);
  if (!cut.has_value()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("define: the servers begin with ", TextOf(cut),
                   ", and this one was started without --restore: restart it "
                   "with --restore"));
}

}  // namespace

absl::StatusOr<Server::Choice> Server::ChooseCut(uint64_t run,
                                                 uint64_t replaces) {
  if (run == 0) {
    return absl::InvalidArgumentError("define: run is 0; draw one at random");
  }
  absl::MutexLock one_at_a_time(&define_mu_);
  if (const auto ours = training(); ours != nullptr) {
    if (ours->run == replaces) return ChooseAgain(run, replaces);
    return Choice{ours->run, restored()};
  }
  const bool must_verify = replaces != 0;
  if (!choice_.has_value() || (must_verify && !is_choice_verified_)) {
    Choice choice{run, absl::nullopt};
    if (options_.restore != nullptr) {
      auto cut = options_.restore->Choose(must_verify);
      if (!cut.ok()) return cut.status();
      choice.cut = *cut;
    }
    if (!choice_.has_value() || choice_->cut != choice.cut) choice_ = choice;
    is_choice_verified_ = must_verify;
  }
  return *choice_;
}

// Returns the choice of a cut for a run that replaces another. Clients whose
// calls overlap get the same choice. A choice is not used again later, because
// a newer checkpoint may have been written since.
absl::StatusOr<Server::Choice> Server::ChooseAgain(uint64_t run,
                                                   uint64_t replaces) {
  if (later_choice_.has_value() && later_choice_->replaces == replaces &&
      SteadyNow() < later_choice_->ends) {
    return later_choice_->choice;
  }
  if (options_.restore == nullptr) {
    return absl::FailedPreconditionError(
        "this server was started without --restore: restart all servers "
        "with --restore=newest");
  }
  const auto cut = options_.restore->Choose(/*verifies=*/true);
  if (!cut.ok()) return cut.status();
  if (!cut->has_value()) {
    return absl::FailedPreconditionError(
        "there is no checkpoint: restart all servers and workers");
  }
  const bool is_same = later_choice_.has_value() &&
                       later_choice_->replaces == replaces &&
                       later_choice_->choice.cut == *cut;
  if (is_same) run = later_choice_->choice.run;
  later_choice_ =
      LaterChoice{replaces, Choice{run, *cut}, SteadyNow() + kChoiceLimit};
  return later_choice_->choice;
}

absl::StatusOr<Server::Defined> Server::Define(const Definition& definition) {
  absl::MutexLock one_at_a_time(&define_mu_);
  if (definition.instance != 0 && definition.instance != instance_) {
    return absl::AbortedError(
        "define: the server was restarted meanwhile: define again");
  }
  if (const auto ours = training(); ours != nullptr) {
    absl::Status same = CheckSame(*ours, definition);
    if (!same.ok()) return same;
    const absl::optional<CutId> cut = restored();
    const bool is_other = definition.run != ours->run || definition.cut != cut;
    const bool may_replace =
        definition.replaces == ours->run &&
        (!has_begun() || (definition.abandons && definition.cut.has_value()));
    if (!is_other || !may_replace) {
      return Defined{false, ours->run, !has_values(), cut};
    }
    if (has_begun() || (has_values() && definition.cut.has_value())) {
      absl::Status can_begin = CheckCut(options_.restore.get(), definition.cut);
      if (can_begin.ok()) can_begin = Abandon();
      if (!can_begin.ok()) return can_begin;
    }
  }
  auto defined = DefineNew(definition);
  if (!defined.ok()) choice_.reset();
  return defined;
}

absl::StatusOr<Server::Defined> Server::DefineNew(
    const Definition& definition) {
  const TrainingLimits limits{options_.tables,
                              options_.membership.expected_workers,
                              options_.max_held_bytes};
  auto training = MakeTraining(definition, limits);
  if (!training.ok()) return training.status();
  absl::Status can_begin = CheckCut(options_.restore.get(), definition.cut);
  if (!can_begin.ok()) return can_begin;
  RestoredModel restored;
  if (definition.cut.has_value()) {
    auto found =
        options_.restore->Restore(*definition.cut, (*training)->tables.get());
    if (!found.ok()) return found.status();
    restored = *std::move(found);
  }
  absl::Status begun = Begin(*std::move(training), restored);
  if (!begun.ok()) return begun;
  return Defined{true, definition.run, !has_values(), definition.cut};
}

absl::Status Server::DefineCopy(const Definition& definition, const CopyOf& of,
                                RestoreSource* values) {
  absl::MutexLock one_at_a_time(&define_mu_);
  if (training() != nullptr) {
    return absl::FailedPreconditionError("define: the server has a training");
  }
  TrainingLimits limits{options_.tables, options_.membership.expected_workers,
                        options_.max_held_bytes};
  limits.tables.hash_seed = of.hash_seed;
  auto training = MakeTraining(definition, limits);
  if (!training.ok()) return training.status();
  auto restored = values->Restore(definition.cut.value_or(CutId()),
                                  (*training)->tables.get());
  if (!restored.ok()) return restored.status();
  instance_ = of.instance;
  return Begin(*std::move(training), *restored);
}

// Drops the values first, so that old and new values are not in memory
// together. Afterwards the server is as after a start.
absl::Status Server::Abandon() {
  ExchangePtr exchange;
  std::shared_ptr<Training> training;
  {
    absl::MutexLock lock(&mu_);
    if (state_ == State::kDraining) return Draining();
    state_ = State::kEmpty;
    exchange.swap(exchange_);
    training.swap(training_);
    instance_ += 2;  // stays odd, so never 0
  }
  choice_.reset();
  later_choice_.reset();
  LogLines(options_.log,
           {absl::StrCat("run ", absl::Hex(training->run),
                         " is replaced: dropping its values, and restoring a "
                         "checkpoint")});
  exchange->Drain();
  steps_.Clear();
  return absl::OkStatus();
}

absl::Status Server::Begin(std::shared_ptr<Training> training,
                           const RestoredModel& restored) {
  auto exchange =
      Exchange::Create(options_, training, restored, &clock_, &steps_);
  if (!exchange.ok()) return exchange.status();
  // Ends the waits of the training that is replaced.
  if (const ExchangePtr before = ExchangeOf(0)) before->Drain();
  Due due;
  {
    absl::MutexLock lock(&mu_);
    if (state_ == State::kDraining) return Draining();
    exchange_ = *std::move(exchange);
    training_ = std::move(training);
    steps_.Begin(exchange_, training_->tables);
    state_ = State::kDefined;
    if (training_->tables->dense().has_values()) {
      state_ = State::kServing;
      EndReadyLocked(absl::OkStatus(), &due);
    }
  }
  for (const auto& callback : due) callback();
  return absl::OkStatus();
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
    // Allows a worker that has not joined, unless another worker has superseded
    // it.
    if (status.ok()) {
      const absl::Status member = exchange_->CheckMember(worker, "initialize");
      if (absl::IsAborted(member)) status = member;
    }
    if (!status.ok()) return status;
    if (state_ != State::kDefined) return false;
    training = training_;
  }
  absl::Status taken = training->tables->dense().Initialize(values);
  if (!taken.ok()) {
    const std::string refusal = absl::StrCat(
        "initialize from worker ", worker.rank, ": ", taken.message());
    LogLines(options_.log, {refusal});
    return absl::Status(taken.code(), refusal);
  }
  Due due;
  {
    absl::MutexLock lock(&mu_);
    // Checks the run again, because another run may have replaced it while the
    // lock was free.
    absl::Status status = CheckViewLocked(view);
    if (!status.ok()) return status;
    if (state_ == State::kDefined && training->tables->dense().has_values()) {
      state_ = State::kServing;
      EndReadyLocked(absl::OkStatus(), &due);
    }
  }
  for (const auto& callback : due) callback();
  return true;
}

}  // namespace penstock::ps
