#include "ps/server/checkpoint_commits.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "ps/checkpoint/chain.h"
#include "ps/checkpoint/index.h"
#include "ps/checkpoint/names.h"
#include "ps/checkpoint/retention.h"
#include "ps/checkpoint/verify.h"
#include "ps/server/checkpoint_clocks.h"
#include "ps/server/checkpoint_model.h"
#include "ps/server/refusals.h"
#include "transport/base/log.h"
#include "transport/base/steady_time.h"

namespace penstock::ps {
namespace {

using checkpoint::StepFolder;
using checkpoint::WorkerClock;

absl::Status Refused(absl::string_view why) {
  return absl::FailedPreconditionError(absl::StrCat("checkpoint: ", why));
}

absl::Status NotCurrent(const CheckpointAttempt& attempt) {
  return absl::AbortedError(absl::StrCat(
      "checkpoint: ", StepFolder(attempt.step),
      " was abandoned: its caller was silent for too long, or has ended it"));
}

// Combines the cuts of all shards. Uses the highest clock of each rank, so that
// no server applies a step twice, and the lowest floor, so that no server waits
// for a push that cannot come.
checkpoint::CutRecord Merge(const std::vector<CheckpointShard>& shards) {
  checkpoint::CutRecord merged;
  std::map<uint32_t, WorkerClock> by_rank;
  for (const CheckpointShard& shard : shards) {
    merged.version = std::max(merged.version, shard.cut.version);
    const uint64_t floor = shard.cut.floor.value_or(0);
    merged.floor = std::min(merged.floor.value_or(floor), floor);
    for (const WorkerClock& clock : shard.cut.clocks) {
      const auto [entry, is_new] = by_rank.insert({clock.rank, clock});
      if (!is_new && clock.clock > entry->second.clock) entry->second = clock;
    }
  }
  for (const auto& [rank, clock] : by_rank) merged.clocks.push_back(clock);
  return merged;
}

// Checks that the server has `run`, even if it drains.
absl::Status CheckRun(const Server& server, uint64_t run) {
  const auto training = server.training();
  if (training == nullptr) return HasNoModel(run);
  if (training->run != run) return OtherRun(run, training->run);
  return absl::OkStatus();
}

// Returns the runs that a run continues if the run begins with `restored`.
std::vector<uint64_t> EarlierRuns(const absl::optional<CutId>& restored) {
  if (!restored.has_value() || restored->run == 0) return {};
  std::vector<uint64_t> runs = restored->earlier_runs;
  runs.push_back(restored->run);
  if (runs.size() > checkpoint::kMaxEarlierRuns) runs.erase(runs.begin());
  return runs;
}

}  // namespace

CheckpointCommits::CheckpointCommits(checkpoint::Files* files, Server* server,
                                     Options options)
    : files_(files),
      server_(server),
      options_(std::move(options)),
      turn_(options_.lease) {}

absl::StatusOr<CheckpointCommits::Begun> CheckpointCommits::Begin(
    const CheckpointRequest& request) {
  absl::MutexLock lock(&mu_);
  const absl::Status mine = CheckNotReleased();
  if (!mine.ok()) return mine;
  const auto exchange = server_->Serving(request.view);
  if (!exchange.ok()) return exchange.status();
  const absl::Status failure = (*exchange)->failure();
  if (!failure.ok()) return failure;
  const auto found = server_->TrainingOf(request.view);
  if (!found.ok()) return found.status();
  const Server::Training& training = **found;
  absl::Status status = Prepare(training);
  if (!status.ok()) return status;
  if (attempt_.has_value() && turn_.IsTaken(base::SteadyNow())) {
    return Begun{Begun::State::kRunning, *attempt_};
  }
  if (attempt_.has_value() && !turn_.HasEnded()) {
    RecordFailure(
        absl::StrCat(StepFolder(attempt_->step), ": its caller is silent"));
  }
  EndAttempt();
  const uint64_t newest = newest_.attempt.step;
  const bool is_lost = IsNewestLost();
  if (newest > 0 && !is_lost && HasAll(newest_clocks_, request.clocks)) {
    if (request.has_waited) return newest_;
    return absl::AlreadyExistsError(
        absl::StrCat("checkpoint: no step was taken since ", StepFolder(newest),
                     ", which has everything"));
  }
  const bool has_base =
      request.incremental && has_committed_ && !is_lost && IsGoodBase(newest);
  auto begun =
      BeginNext(training, BegunClock(**exchange),
                has_base ? absl::make_optional(newest) : absl::nullopt);
  if (begun.ok()) keep_ = request.keep;
  return begun;
}

// Checks that this server can begin checkpoints.
absl::Status CheckpointCommits::Prepare(const Server::Training& training) {
  if (training.server != 0) {
    return Refused(absl::StrCat("this is server ", training.server,
                                "; server 0 begins and commits them"));
  }
  BeginRun(training.run);
  absl::Status status = Open();
  if (!status.ok()) return status;
  const auto is_reclaimed = repository_->Reclaim();
  if (!is_reclaimed.ok()) return is_reclaimed.status();
  if (*is_reclaimed) {
    Log("checkpoints: somebody has removed the folder, or its lock file: this "
        "server has locked the folder again");
  }
  if (has_gone_on_) return absl::OkStatus();
  status = GoOnFrom(training);
  has_gone_on_ = status.ok();
  return status;
}

// Returns true, and logs a warning, if the folder no longer has the newest
// checkpoint of this training.
bool CheckpointCommits::IsNewestLost() const {
  const uint64_t step = newest_.attempt.step;
  if (step == 0) return false;
  const auto chain = checkpoint::OpenChain(files_, step);
  absl::Status why = chain.status();
  if (chain.ok() && chain->newest().attempt.id != newest_.attempt.id) {
    why = absl::DataLossError("it is another one");
  }
  // an error of the disk does not mean that the checkpoint is damaged
  if (!checkpoint::IsDamage(why)) return false;
  Log(absl::StrCat("checkpoints: the folder has lost ", StepFolder(step),
                   ", or a part of it: the next checkpoint is a full one (",
                   why.message(), ")"));
  return true;
}

// Reads every byte of the base and of its own bases, so that no new checkpoint
// depends on a damaged file. Skips this, and returns true, if the last reading
// was recent compared with the time that it took.
bool CheckpointCommits::IsGoodBase(uint64_t step) {
  const absl::Time start = base::SteadyNow();
  if (start < next_verification_) return true;
  const auto found = checkpoint::Verify(files_, step);
  const absl::Duration took = base::SteadyNow() - start;
  next_verification_ = start + took / options_.verify_share;
  if (found.ok() && found->damaged == 0) return true;
  Log(absl::StrCat("checkpoints: ", StepFolder(step),
                   " cannot be a base, so the next checkpoint is a full one: ",
                   found.ok() ? found->damages.front().what
                              : std::string(found.status().message())));
  return false;
}

absl::StatusOr<CheckpointCommits::Begun> CheckpointCommits::BeginNext(
    const Server::Training& training, uint64_t clock,
    absl::optional<uint64_t> base) {
  auto wanted = Describe(training, clock);
  if (!wanted.ok()) return wanted.status();
  wanted->base_step = base;
  auto begun = repository_->Begin(*wanted);
  if (absl::IsFailedPrecondition(begun.status()) &&
      wanted->base_step.has_value()) {
    wanted->base_step.reset();
    begun = repository_->Begin(*wanted);
  }
  if (!begun.ok()) return begun.status();
  const View view = {training.run, training.tables->placement().epoch()};
  attempt_ = {view, begun->step, begun->id, wanted->base_step};
  turn_.Begin(begun->id, base::SteadyNow());
  return Begun{Begun::State::kBegun, *attempt_};
}

absl::Status CheckpointCommits::Renew(const Attempt& attempt) {
  if (turn_.Renew(attempt.id, base::SteadyNow())) return absl::OkStatus();
  return NotCurrent(attempt);
}

void CheckpointCommits::RecordFailure(absl::string_view why) {
  Log(health_.Failed(why, base::SteadyNow()));
}

void CheckpointCommits::GiveUp(const Attempt& attempt) {
  absl::MutexLock lock(&mu_);
  if (attempt_.has_value() && attempt_->id == attempt.id) EndAttempt();
}

void CheckpointCommits::EndAttempt() {
  if (!attempt_.has_value()) return;
  turn_.End(attempt_->id);
  attempt_.reset();
  repository_->Abort();
}

void CheckpointCommits::BeginRun(uint64_t run) {
  if (run == run_) return;
  run_ = run;
  EndAttempt();
  has_gone_on_ = false;
  newest_ = {};
  newest_clocks_.clear();
  has_committed_ = false;
  next_verification_ = absl::InfinitePast();
}

absl::Status CheckpointCommits::Claim() {
  absl::MutexLock lock(&mu_);
  is_released_ = false;
  return Open();
}

absl::Status CheckpointCommits::Lock() {
  absl::MutexLock lock(&mu_);
  const absl::Status mine = CheckNotReleased();
  return mine.ok() ? Open() : mine;
}

absl::Status CheckpointCommits::CheckNotReleased() const {
  if (!is_released_) return absl::OkStatus();
  return absl::UnavailableError(
      "checkpoint: another server leads shard 0 now, and writes it");
}

absl::Status CheckpointCommits::Open() {
  if (repository_ != nullptr) return absl::OkStatus();
  if (options_.holder != nullptr) repository_ = options_.holder->Yield();
  if (repository_ == nullptr) {
    auto opened = checkpoint::Repository::Open(files_);
    if (!opened.ok()) return opened.status();
    repository_ = *std::move(opened);
  }
  Measure();
  return absl::OkStatus();
}

void CheckpointCommits::Release() { Yield(); }

std::unique_ptr<checkpoint::Repository> CheckpointCommits::Yield() {
  absl::MutexLock lock(&mu_);
  is_released_ = true;
  if (repository_ == nullptr) return nullptr;
  EndAttempt();
  run_ = 0;  // the next run starts over, even if it is the same
  return std::move(repository_);
}

bool CheckpointCommits::GoOnFromOwn(uint64_t run) {
  const auto steps = checkpoint::ListSteps(files_);  // the newest first
  if (!steps.ok()) return false;
  for (const uint64_t step : *steps) {
    const auto manifest = checkpoint::ReadManifest(files_, step);
    if (!manifest.ok()) continue;
    if (manifest->run != run) return false;
    newest_.state = Begun::State::kCommitted;
    newest_.attempt.step = step;
    newest_.attempt.id = manifest->attempt.id;
    newest_clocks_ = manifest->cut.clocks;
    Measure();
    return true;
  }
  return false;
}

absl::Status CheckpointCommits::GoOnFrom(const Server::Training& training) {
  if (options_.continues_run && GoOnFromOwn(training.run)) {
    return absl::OkStatus();
  }
  const absl::optional<CutId>& cut = training.cut;
  if (cut.has_value()) {
    const uint64_t restored = cut->step;
    const auto manifest = checkpoint::ReadManifest(files_, restored);
    if (!manifest.ok() && !absl::IsNotFound(manifest.status())) {
      return manifest.status();
    }
    newest_.state = Begun::State::kCommitted;
    newest_.attempt.step = restored;
    if (manifest.ok()) {  // else it is lost
      newest_.attempt.id = manifest->attempt.id;
      newest_clocks_ = manifest->cut.clocks;
    }
    const auto aside = repository_->SetAsideNewer(restored);
    if (!aside.ok()) return aside.status();
    for (const std::string& folder : *aside) {
      Log(absl::StrCat(
          "checkpoints: the training continues from ", StepFolder(restored),
          ", so a newer checkpoint, or one that has lost its manifest, was set "
          "aside as ",
          folder, "; when nobody needs it, remove it with rm -r ", folder,
          " in the folder of --checkpoints"));
    }
    Measure();
    return absl::OkStatus();
  }
  const auto steps = checkpoint::ListSteps(files_);
  if (!steps.ok()) return steps.status();
  if (steps->empty()) return checkpoint::CheckNotAllLost(files_, "the folder");
  return Refused(absl::StrCat("the folder has ", StepFolder(steps->front()),
                              ", and this training does not continue from it: "
                              "restore it, or use another "
                              "folder"));
}

absl::StatusOr<checkpoint::NewCheckpoint> CheckpointCommits::Describe(
    const Server::Training& training, uint64_t clock) const {
  const Tables& tables = *training.tables;
  auto model = CheckpointModelOf(tables.model().model());
  if (!model.ok()) return model.status();
  checkpoint::NewCheckpoint wanted;
  wanted.step = std::max(clock, newest_.attempt.step + 1);
  wanted.model = *std::move(model);
  wanted.run = training.run;
  wanted.earlier_runs = EarlierRuns(training.cut);
  wanted.servers = tables.placement().servers();
  wanted.placement_epoch = tables.placement().epoch();
  wanted.placements = DigestsOf(tables.placement(), tables.model().model());
  wanted.shards = tables.placement().servers().size();
  wanted.created_unix_seconds = absl::ToUnixSeconds(absl::Now());
  wanted.max_depth = options_.max_depth;
  return wanted;
}

absl::StatusOr<std::vector<uint64_t>> CheckpointCommits::Commit(
    const Attempt& attempt, const std::vector<CheckpointShard>& shards) {
  absl::MutexLock lock(&mu_);
  absl::Status status = CheckRun(*server_, attempt.view.run);
  if (!status.ok()) return status;
  if (!attempt_.has_value() || attempt_->step != attempt.step ||
      attempt_->id != attempt.id) {
    return NotCurrent(attempt);
  }
  Begun committed{Begun::State::kCommitted, *attempt_};
  attempt_.reset();
  turn_.End(attempt.id);
  std::vector<checkpoint::ShardInfo> infos;
  infos.reserve(shards.size());
  for (const CheckpointShard& shard : shards) {
    infos.push_back(shard.info);
    committed.bytes += shard.info.bytes;
  }
  checkpoint::CutRecord cut = Merge(shards);
  status = repository_->Commit(std::move(infos), cut);
  if (!status.ok()) return status;
  newest_ = committed;
  newest_clocks_ = std::move(cut.clocks);
  has_committed_ = true;
  std::vector<uint64_t> removed = Prune();
  Measure();
  health_.Succeeded(attempt.step, base::SteadyNow());
  return removed;
}

void CheckpointCommits::Measure() {
  health_.SetHeld(checkpoint::SizeOf(files_).value_or(checkpoint::Held()));
}

// Logs errors only: the new checkpoint exists even if an old one cannot be
// removed.
std::vector<uint64_t> CheckpointCommits::Prune() {
  if (keep_ == 0) return {};
  auto removed = repository_->Prune(keep_);
  if (removed.ok()) return *std::move(removed);
  Log(absl::StrCat("checkpoint: old ones are still there: ",
                   removed.status().message()));
  return {};
}

void CheckpointCommits::Log(const std::string& line) const {
  if (options_.log) {
    options_.log(line);
  } else {
    base::LogWarning("ps: " + line);
  }
}

}  // namespace penstock::ps
