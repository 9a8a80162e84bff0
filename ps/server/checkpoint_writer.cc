#include "ps/server/checkpoint_writer.h"

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "ps/checkpoint/manifest.h"
#include "ps/checkpoint/names.h"
#include "ps/checkpoint/pace.h"
#include "ps/server/checkpoint_model.h"
#include "transport/base/steady_time.h"

namespace penstock::ps {
namespace {

using checkpoint::StepFolder;

// Limits the shards that are remembered as possible bases: the last committed
// shard, and later shards that may have been committed.
constexpr size_t kMostBases = 3;
constexpr size_t kLeastCopyBytes = 1 << 20;

absl::Status Refused(absl::string_view why) {
  return absl::FailedPreconditionError(absl::StrCat("checkpoint: ", why));
}

CheckpointWriter::Options WithDefaults(CheckpointWriter::Options options,
                                       Server* server) {
  if (options.take_snapshot) return options;
  options.take_snapshot =
      [server](const View& view, absl::optional<CutPoint> cut,
               const SparseSnapshotOptions& sparse, absl::Duration timeout,
               Cancellation* cancellation) {
        return server->TakeSnapshot(
            view, std::move(cut), sparse, timeout, [=](uint64_t ticket) {
              if (cancellation == nullptr) return;
              cancellation->EndWaitWith([=] { server->Cancel(ticket); });
            });
      };
  return options;
}

}  // namespace

CheckpointWriter::CheckpointWriter(checkpoint::Files* files, Server* server,
                                   Options options)
    : files_(files),
      server_(server),
      options_(WithDefaults(std::move(options), server)),
      commits_(files, server, options_.commits) {}

absl::StatusOr<CheckpointWriter::Shard> CheckpointWriter::Write(
    const Attempt& attempt, absl::optional<CutPoint> cut,
    Cancellation* cancellation) {
  absl::MutexLock lock(&mu_);
  const auto training = server_->TrainingOf(attempt.view);
  if (!training.ok()) return training.status();
  // Forgets the tables of an earlier run, which no longer exist.
  const uint64_t run = attempt.view.run;
  if (std::exchange(run_, run) != run) written_.clear();
  progress_.done = 0;
  Tables& tables = *(*training)->tables;
  auto base = FindBase(attempt, &tables);
  if (!base.ok()) return base.status();
  auto snapshot = options_.take_snapshot(attempt.view, std::move(cut),
                                         SparseOptions(tables, *base),
                                         options_.max_wait, cancellation);
  if (!snapshot.ok()) return snapshot.status();
  Written written;
  written.attempt = {attempt.step, attempt.id};
  for (const DensePart::Snapshot& part : snapshot->parts) {
    written.part_steps.push_back(part.steps);
  }
  for (const ModelSnapshot::Sparse& table : snapshot->tables) {
    written.epochs.push_back(table.rows->epoch());
  }
  auto shard = WriteShard(attempt, **training, *base, *std::move(snapshot),
                          cancellation);
  if (!shard.ok()) return shard.status();
  written_.push_back(std::move(written));
  if (written_.size() > kMostBases) written_.pop_front();
  return shard;
}

// Returns the shard that this server wrote for the base, or null for a full
// checkpoint. A manifest with the base's attempt proves that the base was
// committed; earlier shards are then forgotten.
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
        "checkpoint: this server cannot continue from ",
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
  if (absl::IsNotFound(writer.status())) {
    return Refused(absl::StrCat(
        "the folder of this server does not have ", StepFolder(attempt.step),
        ", which server 0 has made: all servers need the same, shared folder "
        "for --checkpoints"));
  }
  if (!writer.ok()) return writer.status();
  absl::optional<PartSteps> part_steps;
  if (base != nullptr) part_steps = base->part_steps;
  checkpoint::Pace pace(checkpoint::ShareOfOne(options_.share),
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

ServerReport ReportOf(const Server& server, const CheckpointWriter* writer) {
  ServerReport report = server.report();
  if (writer == nullptr) return report;
  writer->health().Report(base::SteadyNow(), &report);
  report.checkpoint_written_bytes = writer->progress().done;
  report.checkpoint_total_bytes = writer->progress().total;
  return report;
}

}  // namespace penstock::ps
