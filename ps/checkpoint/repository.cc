#include "ps/checkpoint/repository.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ps/checkpoint/chain.h"
#include "ps/checkpoint/index.h"
#include "ps/checkpoint/little_endian.h"
#include "ps/checkpoint/names.h"
#include "ps/checkpoint/retention.h"
#include "ps/checkpoint/shard_reader.h"
#include "ps/checkpoint/verify.h"
#include "transport/base/token.h"

namespace penstock::ps::checkpoint {
namespace {

absl::StatusOr<uint64_t> NewId() {
  const absl::StatusOr<std::string> token = base::NewToken();
  if (!token.ok()) return token.status();
  absl::string_view bytes = *token;
  return Take<uint64_t>(&bytes);
}

// Returns true if only a repository creates files with such a name. Files with
// other names are never removed.
bool IsOurs(const FolderEntry& entry) {
  return entry.type == FolderEntry::Type::kFile &&
         (absl::StartsWith(entry.name, "shard-") ||
          absl::StartsWith(entry.name, kManifestName));
}

absl::Status Unless(bool (*is_fine)(const absl::Status&),
                    const absl::Status& status) {
  return is_fine(status) ? absl::OkStatus() : status;
}

absl::Status NoBase(uint64_t step, absl::string_view why) {
  return absl::FailedPreconditionError(
      absl::StrCat(StepFolder(step),
                   " cannot be the base of an incremental "
                   "checkpoint: ",
                   why, "; take a full one"));
}

// Returns the steps of lost checkpoints. Returns none if the index is damaged.
std::set<uint64_t> Lost(Files* files) {
  const auto lost = ListLost(files);
  if (!lost.ok()) return {};
  return {lost->begin(), lost->end()};
}

}  // namespace

absl::StatusOr<std::unique_ptr<Repository>> Repository::Open(Files* files) {
  auto lock = files->Lock(kLockName);
  if (!lock.ok()) return lock.status();
  std::unique_ptr<Repository> repository(
      new Repository(files, *std::move(lock)));
  absl::Status status = repository->CleanUp();
  if (!status.ok()) return status;
  const auto steps = ListSteps(files);
  if (!steps.ok()) return steps.status();
  repository->own_steps_.insert(steps->begin(), steps->end());
  return repository;
}

Repository::~Repository() { Abort(); }

absl::Status Repository::CleanUp() {
  const auto entries = files_->List("");
  if (!entries.ok()) return entries.status();
  const std::set<uint64_t> lost = Lost(files_);
  for (const FolderEntry& entry : *entries) {
    const auto step = ParseStepFolder(entry.name);
    if (!step.has_value() || entry.type != FolderEntry::Type::kFolder) continue;
    if (lost.count(*step) > 0) continue;
    absl::Status status = CleanFolder(*step);
    if (!status.ok()) return status;
  }
  return Unless(absl::IsNotFound, files_->Remove(kNewIndexName));
}

absl::Status Repository::CleanFolder(uint64_t step) {
  const absl::StatusOr<Manifest> manifest = ReadManifest(files_, step);
  if (absl::IsNotFound(manifest.status())) return RemoveCheckpoint(step);
  // Keep a bad manifest: a search for checkpoints reports the error.
  if (!manifest.ok()) return absl::OkStatus();
  std::set<std::string> listed = {kManifestName};
  for (const ShardInfo& shard : manifest->shards) {
    listed.insert(ShardName(shard.shard, manifest->attempt.id));
  }
  const auto entries = files_->List(StepFolder(step));
  if (!entries.ok()) return entries.status();
  for (const FolderEntry& entry : *entries) {
    if (listed.count(entry.name) > 0 || !IsOurs(entry)) continue;
    // Ignore NOT_FOUND: the server of an ended attempt has removed the file.
    absl::Status status =
        Unless(absl::IsNotFound,
               files_->Remove(absl::StrCat(StepFolder(step), "/", entry.name)));
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status Repository::CheckIsOwn() const {
  absl::Status status = lock_->Check();
  if (!status.ok()) return status;
  const auto steps = ListSteps(files_);
  return steps.ok() ? CheckAreOwn(*steps) : steps.status();
}

absl::StatusOr<bool> Repository::Reclaim() {
  const absl::Status held = lock_->Check();
  if (held.ok()) return false;
  if (!absl::IsFailedPrecondition(held)) return held;
  // Fails if another process may need the lock for its own checkpoints.
  const auto steps = ListSteps(files_);
  if (!steps.ok()) return steps.status();
  absl::Status own = CheckAreOwn(*steps);
  if (!own.ok()) return own;
  auto lock = files_->Lock(kLockName);
  if (!lock.ok()) return lock.status();
  lock_ = *std::move(lock);
  return true;
}

absl::Status Repository::CheckAreOwn(const std::vector<uint64_t>& steps) const {
  for (const uint64_t step : steps) {
    if (own_steps_.count(step) > 0) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        "another process has written ", StepFolder(step),
        " to this folder: it belongs to that training now; start this one with "
        "another folder"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Attempt> Repository::Begin(NewCheckpoint checkpoint) {
  if (current_.has_value()) {
    return absl::FailedPreconditionError(
        absl::StrCat(StepFolder(current_->attempt.step), " is being written"));
  }
  absl::Status status = CheckModel(checkpoint.model);
  if (status.ok()) status = CheckIsOwn();
  if (!status.ok()) return status;
  if (checkpoint.shards == 0 || checkpoint.shards > kMaxShards) {
    return absl::InvalidArgumentError(
        absl::StrCat(checkpoint.shards, " shards: 1 to 65536 are allowed"));
  }
  RemoveLeftovers();
  const absl::StatusOr<Manifest> old = ReadManifest(files_, checkpoint.step);
  if (!absl::IsNotFound(old.status())) {
    return absl::AlreadyExistsError(absl::StrCat(
        StepFolder(checkpoint.step), " exists already",
        old.ok() ? "" : ", and cannot be read: ", old.status().message()));
  }
  const absl::StatusOr<uint64_t> id = NewId();
  if (!id.ok()) return id.status();
  current_.emplace();
  current_->attempt = {checkpoint.step, *id};
  leftovers_.erase(checkpoint.step);
  status = SetBase(checkpoint);
  const std::string folder = StepFolder(checkpoint.step);
  if (status.ok()) {
    status = Unless(absl::IsAlreadyExists, files_->MakeFolder(folder));
  }
  if (status.ok()) status = files_->SyncFolder("");
  if (!status.ok()) {
    Abort();
    return status;
  }
  current_->run = checkpoint.run;
  current_->earlier_runs = std::move(checkpoint.earlier_runs);
  current_->servers = std::move(checkpoint.servers);
  current_->placement_epoch = checkpoint.placement_epoch;
  current_->placements = std::move(checkpoint.placements);
  current_->created_unix_seconds = checkpoint.created_unix_seconds;
  current_->model = std::move(checkpoint.model);
  current_->shards.resize(checkpoint.shards);
  return current_->attempt;
}

absl::Status Repository::SetBase(const NewCheckpoint& checkpoint) {
  if (!checkpoint.base_step.has_value()) return absl::OkStatus();
  const uint64_t step = *checkpoint.base_step;
  if (step >= checkpoint.step) return NoBase(step, "it is not older");
  const absl::StatusOr<Chain> chain = OpenChain(files_, step);
  if (!chain.ok()) return NoBase(step, chain.status().message());
  const Manifest& base = chain->newest();
  if (base.depth >= std::min(checkpoint.max_depth, kMaxDepth)) {
    return NoBase(step, absl::StrCat("it needs ", base.depth, " others"));
  }
  if (base.placement_epoch != checkpoint.placement_epoch) {
    return NoBase(step, "tables have moved between servers since");
  }
  const absl::Status same = CheckSameTables(base.model, checkpoint.model);
  if (!same.ok()) return NoBase(step, same.message());
  current_->base = base.attempt;
  current_->depth = base.depth + 1;
  return absl::OkStatus();
}

absl::Status Repository::Commit(std::vector<ShardInfo> shards, CutRecord cut) {
  if (!current_.has_value()) {
    return absl::FailedPreconditionError("no checkpoint has been begun");
  }
  std::sort(
      shards.begin(), shards.end(),
      [](const ShardInfo& a, const ShardInfo& b) { return a.shard < b.shard; });
  const size_t expected = current_->shards.size();
  current_->shards = std::move(shards);
  current_->cut = std::move(cut);
  absl::Status status = absl::OkStatus();
  if (current_->shards.size() != expected) {
    status = absl::InvalidArgumentError(
        absl::StrCat(current_->shards.size(), " shards of ", expected));
  }
  if (status.ok()) status = CheckIsOwn();
  if (status.ok()) status = CheckShards();
  if (status.ok()) {
    own_steps_.insert(current_->attempt.step);
    status = WriteManifest();
  }
  if (!status.ok()) {
    Abort();
    return status;
  }
  current_.reset();
  // Ignores an error: the checkpoint exists even without an index.
  const auto steps = ListSteps(files_);
  if (steps.ok()) WriteIndex(files_, *steps).IgnoreError();
  return absl::OkStatus();
}

void Repository::RemoveLeftovers() {
  const std::set<uint64_t> leftovers = leftovers_;
  for (const uint64_t step : leftovers) {
    const absl::Status removed = RemoveCheckpoint(step);
    const bool is_gone =
        absl::IsNotFound(files_->List(StepFolder(step)).status());
    if (removed.ok() && is_gone) leftovers_.erase(step);
  }
}

absl::Status Repository::CheckShards() {
  std::vector<Footer> footers;
  for (const ShardInfo& info : current_->shards) {
    if (info.shard != footers.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("shard ", footers.size(), " is missing, or twice"));
    }
    const auto shard =
        ShardReader::Open(files_, &current_->model, current_->attempt, info);
    if (absl::IsNotFound(shard.status())) {
      return absl::DataLossError(absl::StrCat(
          shard.status().message(), ": server ", info.shard,
          " has written it elsewhere: all servers need the same, shared "
          "folder"));
    }
    if (!shard.ok()) return shard.status();
    footers.push_back((*shard)->footer());
  }
  return CheckComplete(*current_, footers);
}

absl::Status Repository::WriteManifest() {
  const absl::StatusOr<std::string> bytes = Encode(*current_);
  if (!bytes.ok()) return bytes.status();
  const uint64_t step = current_->attempt.step;
  const std::string path = NewManifestPath(step, current_->attempt.id);
  auto file = files_->Create(path);
  if (!file.ok()) return file.status();
  absl::Status status = WriteAll(file->get(), *bytes);
  if (status.ok()) status = (*file)->Sync();
  file->reset();
  // Make the names of the shards durable before the manifest is.
  if (status.ok()) status = files_->SyncFolder(StepFolder(step));
  if (status.ok()) status = files_->Rename(path, ManifestPath(step));
  if (status.ok()) status = files_->SyncFolder(StepFolder(step));
  return status;
}

void Repository::Abort() {
  if (!current_.has_value()) return;
  leftovers_.insert(current_->attempt.step);
  current_.reset();
  if (CheckIsOwn().ok()) RemoveLeftovers();
}

absl::Status Repository::RemoveCheckpoint(uint64_t step) {
  const std::string folder = StepFolder(step);
  absl::Status status =
      Unless(absl::IsNotFound, files_->Remove(ManifestPath(step)));
  // Make this removal durable first: a manifest promises that shards exist.
  if (status.ok())
    status = Unless(absl::IsNotFound, files_->SyncFolder(folder));
  if (!status.ok()) return status;
  const auto entries = files_->List(folder);
  if (absl::IsNotFound(entries.status())) return absl::OkStatus();
  if (!entries.ok()) return entries.status();
  for (const FolderEntry& entry : *entries) {
    if (!IsOurs(entry)) continue;
    status = Unless(absl::IsNotFound,
                    files_->Remove(absl::StrCat(folder, "/", entry.name)));
    if (!status.ok()) return status;
  }
  const bool is_empty = std::all_of(entries->begin(), entries->end(), IsOurs);
  if (!is_empty) return absl::OkStatus();
  // Ignore a folder that the server of an ended attempt has filled again.
  return Unless(absl::IsFailedPrecondition, files_->RemoveFolder(folder));
}

absl::StatusOr<std::vector<uint64_t>> Repository::Prune(size_t keep) {
  const auto steps = ListSteps(files_);
  if (!steps.ok()) return steps.status();
  absl::Status status = CheckAreOwn(*steps);
  if (!status.ok()) return status;
  std::set<uint64_t> needed;
  // Keep the base of the checkpoint that is being written.
  if (current_.has_value() && current_->base.has_value()) {
    const auto below = ReadManifests(files_, current_->base->step);
    if (!below.ok()) return below.status();
    AddSteps(*below, &needed);
  }
  auto old = ListOld(files_, *steps, keep, std::move(needed));
  if (!old.ok() || old->empty()) return old;
  std::vector<uint64_t> kept;
  std::set_difference(steps->begin(), steps->end(), old->begin(), old->end(),
                      std::back_inserter(kept), std::greater<uint64_t>());
  status = WriteIndex(files_, kept);
  // Remove the index if it cannot be written: a full disk has no room for an
  // index, and the removal of checkpoints must not stop.
  if (!status.ok()) status = RemoveIndex(files_);
  // Removes the newest first, so that no checkpoint is ever without its base.
  for (const uint64_t step : *old) {
    if (!status.ok()) break;
    leftovers_.insert(step);  // if the removal fails halfway
    status = RemoveCheckpoint(step);
    if (status.ok()) leftovers_.erase(step);
  }
  if (!status.ok()) return status;
  return old;
}

absl::StatusOr<std::vector<std::string>> Repository::SetAsideNewer(
    uint64_t step) {
  if (current_.has_value()) {
    return absl::FailedPreconditionError("a checkpoint is being written");
  }
  const auto steps = ListSteps(files_);
  if (!steps.ok()) return steps.status();
  absl::Status status = CheckAreOwn(*steps);
  if (!status.ok()) return status;
  std::vector<std::string> aside;
  std::vector<uint64_t> kept;
  std::set<uint64_t, std::greater<uint64_t>> away;
  for (const uint64_t each : *steps) {
    if (each > step) away.insert(each);
    if (each <= step) kept.push_back(each);
  }
  const std::set<uint64_t> lost = Lost(files_);
  away.insert(lost.begin(), lost.end());
  if (away.empty()) return aside;
  // Keeps lost checkpoints in the list until the next commit. If this process
  // ends before then, their files stay.
  kept.insert(kept.end(), lost.begin(), lost.end());
  status = WriteIndex(files_, kept);
  if (!status.ok()) return status;
  for (const uint64_t each : away) {
    absl::StatusOr<std::string> folder = SetAside(each);
    if (absl::IsNotFound(folder.status())) continue;  // lost as a whole
    if (!folder.ok()) return folder.status();
    aside.push_back(*std::move(folder));
  }
  if (!aside.empty()) status = files_->SyncFolder("");
  if (!status.ok()) return status;
  return aside;
}

absl::StatusOr<std::string> Repository::SetAside(uint64_t step) {
  const auto entries = files_->List("");
  if (!entries.ok()) return entries.status();
  std::set<std::string> taken;
  for (const FolderEntry& entry : *entries) taken.insert(entry.name);
  int number = 1;
  while (taken.count(AsideFolder(step, number)) > 0) ++number;
  const std::string aside = AsideFolder(step, number);
  absl::Status status = files_->Rename(StepFolder(step), aside);
  if (!status.ok()) return status;
  return aside;
}

}  // namespace penstock::ps::checkpoint
