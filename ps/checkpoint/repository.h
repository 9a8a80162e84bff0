// Begins, commits and prunes checkpoints.

#ifndef PENSTOCK_PS_CHECKPOINT_REPOSITORY_H_
#define PENSTOCK_PS_CHECKPOINT_REPOSITORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "ps/checkpoint/files.h"
#include "ps/checkpoint/manifest.h"

namespace penstock::ps::checkpoint {

struct NewCheckpoint {
  // The step of the training. A later checkpoint has a higher step.
  uint64_t step = 0;
  Model model;
  uint64_t run = 0;
  std::vector<uint64_t> earlier_runs;  // as in the manifest
  std::vector<std::string> servers;
  uint64_t placement_epoch = 0;
  std::vector<uint64_t> placements;  // as in the manifest
  size_t shards = 0;
  // The time at which the checkpoint was made. Shown to people, and otherwise
  // unused.
  int64_t created_unix_seconds = 0;
  // The step of the base of an incremental checkpoint. nullopt for a full
  // checkpoint.
  absl::optional<uint64_t> base_step;
  // Limits the incremental checkpoints of a chain, including the new
  // checkpoint.
  uint32_t max_depth = 16;
};

// The only writer of a root. These calls write a checkpoint:
//
//   the repository   Begin()
//   each server      ShardWriter::Create() ... Finish()
//   the repository   Commit()
//
// The checkpoint exists, complete, once Commit() has renamed the manifest. A
// killed process or a power loss leaves the last good checkpoint and perhaps
// leftover files. The next Open() removes leftover files. Runs one attempt at a
// time. Not thread-safe.
class Repository {
 public:
  // Takes the lock of the root, and cleans up. The repository owns the
  // checkpoints that are present now and the checkpoints that it writes. Never
  // removes other checkpoints. Returns FAILED_PRECONDITION if another process
  // has the lock. `files` must outlive the repository.
  static absl::StatusOr<std::unique_ptr<Repository>> Open(Files* files);
  // Aborts an uncommitted attempt.
  ~Repository();
  Repository(const Repository&) = delete;
  Repository& operator=(const Repository&) = delete;

  // Returns FAILED_PRECONDITION if another process may write to the root: the
  // lock file was removed, or the root has a checkpoint that the repository
  // does not own.
  absl::Status CheckIsOwn() const;

  // Takes the lock again if the lock file was removed, or the root was removed
  // and made again. Returns true if it did. Returns FAILED_PRECONDITION if
  // another process has the lock, or has written a checkpoint.
  absl::StatusOr<bool> Reclaim();

  // Begins an attempt, and makes its folder. Removes the files of earlier
  // attempts that could not be removed when they ended. Returns the errors of
  // CheckIsOwn(), and ALREADY_EXISTS if there is a checkpoint of this step,
  // good or bad. Returns FAILED_PRECONDITION if the base is unusable: damaged,
  // of another model or placement, not older, or with a full chain. Take a full
  // checkpoint then.
  absl::StatusOr<Attempt> Begin(NewCheckpoint checkpoint);

  // Makes the attempt a durable checkpoint. `shards` are the results of the
  // servers' Finish(), in any order. `cut` is needed for restores, because each
  // shard has only its own server's clocks. Returns DATA_LOSS, which names the
  // missing shard or row. After an error the attempt is over, as after Abort().
  absl::Status Commit(std::vector<ShardInfo> shards, CutRecord cut);

  // Removes the files of the attempt. The next Begin() or Open() removes files
  // that cannot be removed now. Does nothing without an attempt.
  void Abort();

  // Removes old checkpoints, and returns their steps; see ListOld(). Keeps the
  // newest `keep` good checkpoints and their bases. Removes nothing if no
  // checkpoint is good. A kill leaves each kept checkpoint intact. Stops with
  // an error at a checkpoint that is unreadable and may be good.
  absl::StatusOr<std::vector<uint64_t>> Prune(size_t keep);

  // Renames the folders of checkpoints newer than `step`, good or bad, by
  // AsideFolder(), and returns the new names. Call before a run continues from
  // the checkpoint of `step`, because the run will reach the steps of the newer
  // checkpoints again. Also renames the folders of lost checkpoints of any
  // step; see ListLost(). Returns FAILED_PRECONDITION during an attempt.
  absl::StatusOr<std::vector<std::string>> SetAsideNewer(uint64_t step);

 private:
  Repository(Files* files, std::unique_ptr<FileLock> lock)
      : files_(files), lock_(std::move(lock)) {}

  absl::Status CheckAreOwn(const std::vector<uint64_t>& steps) const;
  absl::Status CleanUp();
  absl::Status CleanFolder(uint64_t step);
  // Removes the folders of the steps in leftovers_. Ignores errors: the next
  // Begin() tries again.
  void RemoveLeftovers();
  absl::Status SetBase(const NewCheckpoint& checkpoint);
  absl::Status WriteManifest();
  absl::Status CheckShards();
  absl::StatusOr<std::string> SetAside(uint64_t step);
  // Removes a checkpoint's files, the manifest first. Also removes the rest of
  // a partly removed checkpoint.
  absl::Status RemoveCheckpoint(uint64_t step);

  Files* const files_;
  std::unique_ptr<FileLock> lock_;
  std::set<uint64_t> own_steps_;
  // The steps whose folders may still exist: those of attempts that have ended,
  // and of old checkpoints.
  std::set<uint64_t> leftovers_;
  // The manifest of the attempt. nullopt if there is no attempt.
  absl::optional<Manifest> current_;
};

}  // namespace penstock::ps::checkpoint

#endif  // PENSTOCK_PS_CHECKPOINT_REPOSITORY_H_
