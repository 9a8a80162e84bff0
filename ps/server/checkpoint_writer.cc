#include "ps/server/checkpoint_writer.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "ps/checkpoint/chain.h"
#include "ps/checkpoint/manifest.h"
#include "ps/checkpoint/names.h"
#include "ps/server/checkpoint_model.h"
#include "ps/server/pace.h"
#include "transport/base/log.h"
#include "transport/base/steady_time.h"

namespace penstock::ps {
namespace {

using checkpoint::StepFolder;
using checkpoint::WorkerClock;

// Limits the shards that are kept as possible bases: the last committed shard,
// and later shards that may have been committed.
constexpr size_t kMostBases = 3;
constexpr size_t kLeastCopyBytes = 1 << 20;

absl::Status Refused(absl::string_view why) {
  return absl::FailedPreconditionError(absl::StrCat("checkpoint: ", why));
}

absl::Status NotCurrent(const CheckpointWriter::Attempt& attempt) {
  return absl::AbortedError(absl::StrCat(
      "checkpoint: ", StepFolder(attempt.step),
      " was given up, as its caller was silent for too long or has ended it"));
}

std::vector<WorkerClock> ToRecords(const std::vector<RankClock>& clocks) {
  std::vector<WorkerClock> records;
  records.reserve(clocks.size());
  for (const RankClock& each : clocks) {
    records.push_back({each.worker.rank, each.worker.incarnation, each.clock});
  }
  return records;
}

uint64_t Highest(const std::vector<WorkerClock>& clocks) {
  uint64_t highest = 0;
  for (const WorkerClock& each : clocks) {
    highest = std::max(highest, each.clock);
  }
  return highest;
}

// Returns true if a checkpoint with the clocks `cut` has all pushes before
// `clocks`.
bool HasAll(const std::vector<WorkerClock>& cut,
            const std::vector<WorkerClock>& clocks) {
  std::map<uint32_t, uint64_t> by_rank;
  for (const WorkerClock& each : cut) by_rank[each.rank] = each.clock;
  return std::all_of(clocks.begin(), clocks.end(),
                     [&](const WorkerClock& each) {
                       return each.clock <= by_rank[each.rank];
                     });
}

// Takes the highest clock of each rank, so that no server takes a step twice.
// Takes the lowest floor, so that no server waits for a push that cannot come.
checkpoint::CutRecord Merge(
    const std::vector<CheckpointWriter::Shard>& shards) {
  checkpoint::CutRecord merged;
  std::map<uint32_t, WorkerClock> by_rank;
  for (const CheckpointWriter::Shard& shard : shards) {
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

}  // namespace

CheckpointWriter::CheckpointWriter(checkpoint::Files* files, Server* server,
                                   Options options)
    : files_(files),
      server_(server),
      options_(std::move(options)),
      turn_(options_.lease) {}

absl::StatusOr<CheckpointWriter::Begun> CheckpointWriter::Begin(
    bool incremental, size_t keep, const absl::optional<Clocks>& of_all,
    bool has_waited) {
  absl::MutexLock lock(&mu_);
  const auto applied = server_->AppliedClocks();
  if (!applied.ok()) return applied.status();
  const Training training = server_->training();
  absl::Status status = Prepare(*training);
  if (!status.ok()) return status;
  if (attempt_.has_value() && turn_.IsTaken(base::SteadyNow())) {
    return Begun{Begun::State::kRunning, *attempt_};
  }
  EndAttempt();
  const Clocks clocks = ToRecords(*applied);
  const uint64_t newest = newest_.attempt.step;
  if (newest > 0 && HasAll(newest_clocks_, of_all.value_or(clocks))) {
    if (has_waited) return newest_;
    return absl::AlreadyExistsError(
        absl::StrCat("checkpoint: no step was taken since ", StepFolder(newest),
                     ", which has everything"));
  }
  auto begun = BeginNext(*training, clocks, incremental);
  if (begun.ok()) keep_ = keep;
  return begun;
}

// Checks that this server can begin checkpoints.
absl::Status CheckpointWriter::Prepare(const Server::Training& training) {
  if (training.server != 0) {
    return Refused(absl::StrCat("this is server ", training.server,
                                "; server 0 begins and commits them"));
  }
  BeginRun(training.run);
  absl::Status status = Open();
  if (status.ok() && !has_gone_on_) status = GoOnFromRestored();
  if (status.ok()) has_gone_on_ = true;
  return status;
}

absl::StatusOr<CheckpointWriter::Begun> CheckpointWriter::BeginNext(
    const Server::Training& training, const Clocks& clocks, bool incremental) {
  auto wanted = Describe(training, clocks);
  if (!wanted.ok()) return wanted.status();
  if (incremental && last_step_ > 0) wanted->base_step = last_step_;
  auto begun = repository_->Begin(*wanted);
  if (absl::IsFailedPrecondition(begun.status()) &&
      wanted->base_step.has_value()) {
    wanted->base_step.reset();
    begun = repository_->Begin(*wanted);
  }
  if (!begun.ok()) return begun.status();
  attempt_ = {begun->step, begun->id, wanted->base_step};
  turn_.Begin(begun->id, base::SteadyNow());
  return Begun{Begun::State::kBegun, *attempt_};
}

absl::Status CheckpointWriter::Renew(const Attempt& attempt) {
  if (turn_.Renew(attempt.id, base::SteadyNow())) return absl::OkStatus();
  return NotCurrent(attempt);
}

void CheckpointWriter::GiveUp(const Attempt& attempt) {
  absl::MutexLock lock(&mu_);
  if (attempt_.has_value() && attempt_->id == attempt.id) EndAttempt();
}

void CheckpointWriter::EndAttempt() {
  if (!attempt_.has_value()) return;
  turn_.End(attempt_->id);
  attempt_.reset();
  repository_->Abort();
}

void CheckpointWriter::BeginRun(uint64_t run) {
  if (run == run_) return;
  run_ = run;
  EndAttempt();
  written_.clear();
  last_step_ = 0;
  has_gone_on_ = false;
  newest_ = {};
  newest_clocks_.clear();
}

absl::Status CheckpointWriter::Claim() {
  absl::MutexLock lock(&mu_);
  return Open();
}

absl::Status CheckpointWriter::Open() {
  if (repository_ != nullptr) return absl::OkStatus();
  auto opened = checkpoint::Repository::Open(files_);
  if (!opened.ok()) return opened.status();
  repository_ = *std::move(opened);
  return absl::OkStatus();
}

absl::Status CheckpointWriter::GoOnFromRestored() {
  const uint64_t restored = server_->report().restored_step;
  if (restored > 0) {
    const auto manifest = checkpoint::ReadManifest(files_, restored);
    if (!manifest.ok()) return manifest.status();
    newest_.state = Begun::State::kCommitted;
    newest_.attempt = {restored, manifest->attempt.id, absl::nullopt};
    newest_clocks_ = manifest->cut.clocks;
    const auto aside = repository_->SetAsideNewer(restored);
    if (!aside.ok()) return aside.status();
    for (const std::string& folder : *aside) {
      base::LogWarning(absl::StrCat(
          "ps: checkpoints: the training goes on from ", StepFolder(restored),
          ", so a newer checkpoint was set aside as ", folder,
          "; remove that folder when nobody needs it"));
    }
    return absl::OkStatus();
  }
  const auto steps = checkpoint::ListSteps(files_);
  if (!steps.ok()) return steps.status();
  if (steps->empty()) return absl::OkStatus();
  return Refused(absl::StrCat(
      "the folder has ", StepFolder(steps->front()),
      ", and this training does not go on from it: restore it, or use another "
      "folder"));
}

absl::StatusOr<checkpoint::NewCheckpoint> CheckpointWriter::Describe(
    const Server::Training& training, const Clocks& clocks) const {
  const Tables& tables = *training.tables;
  auto model = CheckpointModelOf(tables.model().model());
  if (!model.ok()) return model.status();
  checkpoint::NewCheckpoint wanted;
  wanted.step = std::max(Highest(clocks), newest_.attempt.step + 1);
  wanted.model = *std::move(model);
  wanted.run = training.run;
  wanted.servers = tables.placement().servers();
  wanted.placement_epoch = tables.placement().epoch();
  wanted.shards = tables.placement().servers().size();
  wanted.created_unix_seconds = absl::ToUnixSeconds(absl::Now());
  wanted.max_depth = options_.max_depth;
  return wanted;
}

absl::StatusOr<CheckpointWriter::Shard> CheckpointWriter::Write(
    const Attempt& attempt, absl::optional<CutPoint> cut,
    Cancellation* cancellation) {
  absl::MutexLock lock(&mu_);
  const Training training = server_->training();
  if (training == nullptr) return Refused("this server has no model");
  BeginRun(training->run);
  progress_.done = 0;
  Tables& tables = *training->tables;
  auto base = FindBase(attempt, &tables);
  if (!base.ok()) return base.status();
  auto snapshot =
      TakeSnapshot(std::move(cut), SparseOptions(tables, *base), cancellation);
  if (!snapshot.ok()) return snapshot.status();
  Written written;
  written.attempt = {attempt.step, attempt.id};
  for (const DensePart::Snapshot& part : snapshot->parts) {
    written.part_steps.push_back(part.steps);
  }
  for (const ModelSnapshot::Sparse& table : snapshot->tables) {
    written.epochs.push_back(table.rows->epoch());
  }
  auto shard =
      WriteShard(attempt, *training, *base, *std::move(snapshot), cancellation);
  if (!shard.ok()) return shard.status();
  written_.push_back(std::move(written));
  if (written_.size() > kMostBases) written_.pop_front();
  return shard;
}

// A manifest with the base's attempt proves that the base was committed.
// Earlier shards are then not needed any more.
absl::StatusOr<const CheckpointWriter::Written*> CheckpointWriter::FindBase(
    const Attempt& attempt, Tables* tables) {
  if (!attempt.base_step.has_value()) return nullptr;
  const auto manifest = checkpoint::ReadManifest(files_, *attempt.base_step);
  const auto base =
      std::find_if(written_.begin(), written_.end(), [&](const Written& each) {
        return manifest.ok() && each.attempt.step == manifest->attempt.step &&
               each.attempt.id == manifest->attempt.id;
      });
  if (base == written_.end()) {
    return absl::NotFoundError(absl::StrCat(
        "checkpoint: this server cannot go on from ",
        StepFolder(*attempt.base_step), ": ",
        manifest.ok() ? "it has not written its shard in this process"
                      : manifest.status().message(),
        "; take a full one"));
  }
  written_.erase(written_.begin(), base);
  for (size_t i = 0; i < written_.front().epochs.size(); ++i) {
    tables->table(i).ForgetRemovals(written_.front().epochs[i]);
  }
  return &written_.front();
}

// Divides the memory for copies among the tables in proportion to their sizes.
SparseSnapshotOptions CheckpointWriter::SparseOptions(
    const Tables& tables, const Written* base) const {
  std::vector<double> bytes(tables.model().rows().size());
  double all = 1;
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<double>(tables.table(i).counters().bytes);
    all += bytes[i];
  }
  SparseSnapshotOptions options(bytes.size());
  for (size_t i = 0; i < bytes.size(); ++i) {
    const double share =
        bytes[i] / all * static_cast<double>(options_.copy_bytes);
    options[i].copy_bytes = kLeastCopyBytes + static_cast<size_t>(share);
    if (base != nullptr) options[i].since = base->epochs[i];
  }
  return options;
}

absl::StatusOr<ModelSnapshot> CheckpointWriter::TakeSnapshot(
    absl::optional<CutPoint> cut, const SparseSnapshotOptions& sparse,
    Cancellation* cancellation) const {
  return server_->TakeSnapshot(
      std::move(cut), sparse, options_.max_wait, [&](uint64_t ticket) {
        if (cancellation == nullptr) return;
        cancellation->EndWaitWith(
            [server = server_, ticket] { server->Cancel(ticket); });
      });
}

absl::StatusOr<CheckpointWriter::Shard> CheckpointWriter::WriteShard(
    const Attempt& attempt, const Server::Training& training,
    const Written* base, ModelSnapshot snapshot,
    const Cancellation* cancellation) {
  const auto model = CheckpointModelOf(training.tables->model().model());
  if (!model.ok()) return model.status();
  Shard shard;
  shard.cut = {ToRecords(snapshot.cut.clocks), snapshot.cut.version,
               snapshot.cut.floor};
  auto writer = checkpoint::ShardWriter::Create(
      files_, &*model, {attempt.step, attempt.id}, training.server);
  if (!writer.ok()) return writer.status();
  absl::optional<PartSteps> part_steps;
  if (base != nullptr) part_steps = base->part_steps;
  Pace pace(ShareOfOne(options_.share),
            [&] { return server_->push_counts().counted; });
  absl::Status status =
      WriteSnapshot(*training.tables, *model, part_steps, cancellation, &pace,
                    std::move(snapshot), &progress_, writer->get());
  const absl::Cleanup ended = [this] { progress_.total = 0; };
  if (!status.ok()) return status;
  auto info = (*writer)->Finish(shard.cut.clocks);
  if (!info.ok()) return info.status();
  shard.info = *info;
  return shard;
}

absl::StatusOr<std::vector<uint64_t>> CheckpointWriter::Commit(
    const Attempt& attempt, const std::vector<Shard>& shards) {
  absl::MutexLock lock(&mu_);
  if (!attempt_.has_value() || attempt_->step != attempt.step ||
      attempt_->id != attempt.id) {
    return NotCurrent(attempt);
  }
  Begun committed{Begun::State::kCommitted, *attempt_};
  attempt_.reset();
  turn_.End(attempt.id);
  std::vector<checkpoint::ShardInfo> infos;
  infos.reserve(shards.size());
  for (const Shard& shard : shards) {
    infos.push_back(shard.info);
    committed.bytes += shard.info.bytes;
  }
  checkpoint::CutRecord cut = Merge(shards);
  absl::Status status = repository_->Commit(std::move(infos), cut);
  if (!status.ok()) return status;
  newest_ = committed;
  newest_clocks_ = std::move(cut.clocks);
  last_step_ = attempt.step;
  return Prune();
}

// Logs errors only: the new checkpoint exists even if an old one cannot be
// removed.
std::vector<uint64_t> CheckpointWriter::Prune() {
  if (keep_ == 0) return {};
  auto removed = repository_->Prune(keep_);
  if (removed.ok()) return *std::move(removed);
  Log(absl::StrCat("checkpoint: old ones are still there: ",
                   removed.status().message()));
  return {};
}

void CheckpointWriter::Log(const std::string& line) const {
  if (options_.log) return options_.log(line);
  base::LogWarning("ps: " + line);
}

ServerReport ReportOf(const Server& server, const CheckpointWriter* writer) {
  ServerReport report = server.report();
  if (writer == nullptr) return report;
  report.last_checkpoint_step = writer->last_step();
  report.checkpoint_written_bytes = writer->progress().done;
  report.checkpoint_total_bytes = writer->progress().total;
  return report;
}

}  // namespace penstock::ps
