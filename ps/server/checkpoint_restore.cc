#include "ps/server/checkpoint_restore.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ps/checkpoint/chain.h"
#include "ps/checkpoint/index.h"
#include "ps/checkpoint/names.h"
#include "ps/checkpoint/restore.h"
#include "ps/checkpoint/verify.h"
#include "ps/server/checkpoint_model.h"
#include "ps/server/tables_sink.h"
#include "ps/sparse/row_store.h"
#include "ps/sparse/table.h"
#include "transport/base/log.h"
#include "transport/base/printable.h"

namespace penstock::ps {
namespace {

using checkpoint::Chain;
using checkpoint::StepFolder;

void Warn(const RestoreOptions& options, const std::string& line) {
  if (options.log) return options.log(line);
  base::LogWarning("ps: " + line);
}

void Say(const RestoreOptions& options, const std::string& line) {
  if (options.log) return options.log(line);
  base::LogInfo("ps: " + line);
}

// Returns one value per table of the model: true if the checkpoint lacks the
// table. Logs these tables, and the checkpoint's tables that the model lacks.
std::vector<bool> FindNew(const Chain& chain, const checkpoint::Model& model,
                          Tables* tables, const RestoreOptions& options) {
  const std::vector<std::string> added =
      checkpoint::NotIn(chain.model(), model);
  const std::vector<std::string> dropped =
      checkpoint::NotIn(model, chain.model());
  const auto say = [&](const std::vector<std::string>& names,
                       absl::string_view what) {
    if (names.empty()) return;
    Warn(options,
         absl::StrCat("restore: ", StepFolder(chain.newest().attempt.step),
                      what, absl::StrJoin(names, ", ")));
  };
  say(added, " does not have these tables, which start with initial values: ");
  say(dropped, " has these tables, which are not in the model: ");
  std::vector<bool> is_new(model.tables.size());
  for (size_t i = 0; i < is_new.size(); ++i) {
    is_new[i] =
        std::count(added.begin(), added.end(), model.tables[i].name) > 0;
    if (is_new[i]) tables->SetNew(i);
  }
  return is_new;
}

// Returns `status` as the error of restoring `cut`. Damage of any kind becomes
// DATA_LOSS: NOT_FOUND would mean that there is no checkpoint, and
// INVALID_ARGUMENT that the model is invalid.
absl::Status Failed(const CutId& cut, const absl::Status& status) {
  return absl::Status(
      checkpoint::IsDamage(status) ? absl::StatusCode::kDataLoss
                                   : status.code(),
      absl::StrCat("restore ", StepFolder(cut.step), ": ", status.message()));
}

// Returns a text that names the limit for which rows did not fit.
std::string LimitOf(const sparse::Options& table,
                    const sparse::RestoreLoss& loss) {
  if (!loss.by_memory) {
    return absl::StrCat("max_rows is ", table.max_rows, " for each server");
  }
  if (table.budget_bytes > 0) {
    return absl::StrCat("budget_bytes is ", table.budget_bytes,
                        " for each server");
  }
  if (table.pool == nullptr) return "there is no more memory";
  return absl::StrCat("--sparse-memory is ", table.pool->limit(),
                      " for all tables without a budget_bytes");
}

// Returns true if the table evicts rows anyway, and would have room for `rows`
// if its limits were not divided among shards.
bool WouldEvict(const sparse::Options& table, const sparse::RestoreLoss& loss,
                uint64_t rows) {
  if (table.max_rows > 0 && rows > table.max_rows) return false;
  const size_t row =
      sparse::RowStore::StrideOf(table.dim * (1 + table.slots()));
  return !loss.by_memory ||
         (table.above_budget == sparse::AboveBudget::kEvict &&
          table.budget_bytes > 0 && rows * row <= table.budget_bytes);
}

// Logs a warning about dropped rows. Returns an error, which refuses the
// restore, if the options do not allow dropping rows.
absl::Status CheckLost(const RestoreOptions& options, const Tables& tables,
                       const TablesSink::Lost& lost) {
  const sparse::Table& table = tables.table(lost.rows);
  const uint64_t all = table.counters().rows + lost.loss.ids;
  const std::string numbers = absl::StrCat(
      "table ", base::Printable(table.options().name, 100), ": ", lost.loss.ids,
      " of ", all, " rows at server ", tables.server(), " have no room (",
      LimitOf(table.options(), lost.loss), ")");
  if (!options.may_drop_rows && !WouldEvict(table.options(), lost.loss, all)) {
    return absl::FailedPreconditionError(absl::StrCat(
        numbers,
        ": add servers, raise the limit, or start all servers with "
        "--restore-evict, to drop the rows that were not used for longest"));
  }
  Warn(options, absl::StrCat("restore: ", numbers,
                             ": dropped those that were not used for longest"));
  return absl::OkStatus();
}

CutId CutOf(const checkpoint::Manifest& manifest) {
  return {manifest.attempt.step, manifest.attempt.id, manifest.run,
          manifest.earlier_runs};
}

class FolderSource final : public RestoreSource {
 public:
  FolderSource(checkpoint::Files* files, absl::optional<uint64_t> wanted,
               RestoreOptions options)
      : files_(files), wanted_(wanted), options_(std::move(options)) {}

  absl::StatusOr<absl::optional<CutId>> Choose(bool verifies) override {
    if (wanted_.has_value()) {
      const auto cut = Find(*wanted_);
      if (!cut.ok()) return cut.status();
      return absl::make_optional(*cut);
    }
    auto found = checkpoint::FindLastGood(
        files_, verifies ? checkpoint::Thoroughness::kFull
                         : checkpoint::Thoroughness::kQuick);
    if (absl::IsNotFound(found.status())) {
      // Returns an error if checkpoints have lost their manifests. A training
      // that begins at step 0 would overwrite files that somebody may still
      // recover.
      absl::Status lost = checkpoint::CheckNotAllLost(files_, options_.folder);
      if (!lost.ok()) {
        return absl::Status(lost.code(),
                            absl::StrCat("restore: ", lost.message()));
      }
      Warn(options_,
           absl::StrCat("restore: ", options_.folder,
                        " has no checkpoint: the training begins with "
                        "the first values of worker 0"));
      return absl::nullopt;
    }
    if (!found.ok()) return found.status();
    for (const absl::Status& skipped : found->skipped) {
      Warn(options_, absl::StrCat("restore: passed over: ", skipped.message()));
    }
    const CutId cut = CutOf(found->chain.newest());
    absl::Status known = WarnOfLost(cut.step);
    if (!known.ok()) return known;
    return absl::make_optional(cut);
  }

  absl::Status Check(const absl::optional<CutId>& cut) override {
    if (cut.has_value()) return CheckHas(*cut);
    const auto steps = checkpoint::ListSteps(files_);
    if (!steps.ok()) return steps.status();
    if (steps->empty() && !wanted_.has_value()) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat(
        "restore: expected no checkpoint, with which the other servers begin; "
        "found ",
        checkpoint::StepFolder(
            wanted_.value_or(steps->empty() ? 0 : steps->front())),
        " in ", options_.folder,
        ": start all servers with --restore, and with the same folder"));
  }

  absl::StatusOr<RestoredModel> Restore(const CutId& cut,
                                        Tables* tables) override {
    return RestoreCheckpoint(files_, cut, options_, tables);
  }

 private:
  // Warns of committed checkpoints after `step` whose manifests are missing.
  // Returns an error if the list of checkpoints cannot be read now.
  absl::Status WarnOfLost(uint64_t step) {
    const auto lost = checkpoint::ListLost(files_);
    if (!lost.ok()) {
      const std::string what = absl::StrCat(
          "restore: cannot tell whether checkpoints after ", StepFolder(step),
          " are missing: ", lost.status().message());
      if (!checkpoint::IsDamage(lost.status())) {
        return absl::Status(lost.status().code(), what);
      }
      Warn(options_, what);
      return absl::OkStatus();
    }
    for (const uint64_t each : *lost) {
      if (each <= step) break;
      Warn(options_,
           absl::StrCat("restore: ", StepFolder(each), " of ", options_.folder,
                        " was committed, and has no manifest any more: the "
                        "training goes back to ",
                        StepFolder(step)));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<CutId> Find(uint64_t step) {
    const auto manifest = checkpoint::ReadManifest(files_, step);
    if (manifest.ok()) return CutOf(*manifest);
    if (!absl::IsNotFound(manifest.status())) return manifest.status();
    const auto steps = checkpoint::ListSteps(files_);
    if (!steps.ok()) return steps.status();
    return absl::FailedPreconditionError(absl::StrCat(
        "restore: expected ", StepFolder(step), "; found ",
        steps->empty() ? "no checkpoint" : StepFolder(steps->front()), " in ",
        options_.folder,
        ": start all servers with the same, shared folder, and with "
        "--restore=newest or a step that the folder has"));
  }

  absl::Status CheckHas(const CutId& cut) {
    if (wanted_.has_value() && *wanted_ != cut.step) {
      return absl::FailedPreconditionError(
          absl::StrCat("restore: this server was told to begin with ",
                       StepFolder(*wanted_), ", and the others begin with ",
                       TextOf(cut), ": give all servers the same --restore"));
    }
    const auto found = Find(cut.step);
    if (!found.ok()) return found.status();
    if (*found == cut) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat(
        "restore: expected ", TextOf(cut), "; found ", TextOf(*found), " in ",
        options_.folder, ": all servers need the same, shared folder"));
  }

  checkpoint::Files* const files_;
  const absl::optional<uint64_t> wanted_;
  const RestoreOptions options_;
};

}  // namespace

absl::StatusOr<RestoredModel> RestoreCheckpoint(checkpoint::Files* files,
                                                const CutId& cut,
                                                const RestoreOptions& options,
                                                Tables* tables) {
  const auto chain = checkpoint::OpenChain(files, cut.step);
  if (!chain.ok()) return Failed(cut, chain.status());
  const checkpoint::Manifest& manifest = chain->newest();
  if (CutOf(manifest) != cut) {
    return Failed(cut, absl::FailedPreconditionError(
                           absl::StrCat("there is ", TextOf(CutOf(manifest)))));
  }
  const auto model = CheckpointModelOf(tables->model().model());
  if (!model.ok()) return model.status();
  TablesSink sink(tables, FindNew(*chain, *model, tables, options));
  absl::Status status = sink.Begin();
  if (status.ok()) {
    checkpoint::Wanted wanted = sink.Wanted();
    wanted.may_drop_tables = options.may_drop_tables;
    status = checkpoint::Restore(files, *chain, *model, wanted, &sink);
  }
  if (status.ok()) status = sink.Finish();
  for (size_t i = 0; status.ok() && i < sink.lost().size(); ++i) {
    status = CheckLost(options, *tables, sink.lost()[i]);
  }
  if (!status.ok()) return Failed(cut, status);
  Say(options,
      absl::StrCat("restore: server ", tables->server(), " has ", TextOf(cut),
                   " from ", options.folder, ": ", sink.elements(),
                   " elements of dense tables and "
                   "slots, ",
                   sink.rows(), " sparse rows"));
  RestoredModel restored;
  restored.version = manifest.cut.version;
  restored.floor = manifest.cut.floor;
  for (const checkpoint::WorkerClock& clock : manifest.cut.clocks) {
    restored.clocks.push_back({{clock.rank, clock.incarnation}, clock.clock});
  }
  return restored;
}

std::shared_ptr<RestoreSource> RestoreFrom(checkpoint::Files* files,
                                           absl::optional<uint64_t> wanted,
                                           const RestoreOptions& options) {
  return std::make_shared<FolderSource>(files, wanted, options);
}

absl::Status CheckHasStep(checkpoint::Files* files, uint64_t step,
                          const std::string& folder) {
  RestoreOptions options;
  options.folder = folder;
  return RestoreFrom(files, step, options)->Choose(/*verifies=*/false).status();
}

absl::Status CheckUnused(checkpoint::Files* files, const std::string& folder) {
  const auto steps = checkpoint::ListSteps(files);
  if (!steps.ok()) return steps.status();
  if (steps->empty()) return checkpoint::CheckNotAllLost(files, folder);
  return absl::FailedPreconditionError(absl::StrCat(
      "checkpoint: ", folder, " has ", StepFolder(steps->front()),
      ", and a new training would write nothing there: continue that "
      "training with --restore=newest, or give another folder with "
      "--checkpoints"));
}

}  // namespace penstock::ps
