// Begins checkpoints, makes them valid, and removes what is no longer wanted.

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
  // Orders checkpoints: the last good one has the highest.
  uint64_t step = 0;
  Model model;
  uint64_t run = 0;
  std::vector<std::string> servers;
  uint64_t placement_epoch = 0;
  size_t shards = 0;
  // To be shown.
  int64_t created_unix_seconds = 0;
  // The checkpoint that an incremental one goes on from.
  absl::optional<uint64_t> base_step;
  // Incremental checkpoints up to a full one, this one with them.
  uint32_t max_depth = 16;
};

// The one writer of a root. A checkpoint is written so:
//
//   the repository   Begin()
//   each server      ShardWriter::Create() ... Finish()
//   the repository   Commit()
//
// Until Commit() has renamed the manifest there is no checkpoint, and from then
// on it is whole; a process that is killed, or a host that loses its power, at
// any time leaves the last good one and perhaps leftovers. The next Open()
// removes those. One attempt at a time. Not thread-safe.
class Repository {
 public:
  // Takes the lock of the root, and cleans up. The checkpoints that are there
  // now and those that the repository writes are its own; others are never
  // removed. FAILED_PRECONDITION: another process has the lock. `files` outlive
  // the repository.
  static absl::StatusOr<std::unique_ptr<Repository>> Open(Files* files);
  // Aborts an attempt that is not committed.
  ~Repository();
  Repository(const Repository&) = delete;
  Repository& operator=(const Repository&) = delete;

  // Returns FAILED_PRECONDITION if somebody else may write to the root: the
  // file of the lock was removed, or a checkpoint is there that is not its own.
  absl::Status CheckIsOwn() const;

  // Makes the folder. Returns what CheckIsOwn() does, ALREADY_EXISTS if there
  // is a checkpoint of this step, good or bad; FAILED_PRECONDITION if the base
  // cannot be one: it is damaged, of another model or placement, not older, or
  // its chain is full: take a full checkpoint then.
  absl::StatusOr<Attempt> Begin(NewCheckpoint checkpoint);

  // Makes it a checkpoint, and durable. `shards` are what the servers' Finish()
  // returned, in any order; `cut` is for who restores: each shard has its
  // server's own clocks. Returns DATA_LOSS, naming it, if a shard is not
  // there or a row of a table is missing. After an error the attempt is over,
  // as by Abort().
  absl::Status Commit(std::vector<ShardInfo> shards, CutRecord cut);

  // Removes what the attempt has written. What cannot be removed now is at the
  // next Open(). Does nothing without an attempt.
  void Abort();

  // Removes all checkpoints older than the newest `keep` good ones, but those
  // that they stand on. Returns the steps removed. A kill leaves each of the
  // others whole. Keeps damaged ones that are newer than the oldest that it
  // keeps, and, if none is good, everything. Returns an error, and has removed
  // nothing more, for one that may be good and cannot be read.
  absl::StatusOr<std::vector<uint64_t>> Prune(size_t keep);

  // Sets aside the checkpoints newer than `step`, good or bad, as folders named
  // by AsideFolder(), and returns the names of these folders. Call before a run
  // that goes on from the checkpoint of `step`, because that run reaches their
  // steps again. Returns FAILED_PRECONDITION during an attempt.
  absl::StatusOr<std::vector<std::string>> SetAsideNewer(uint64_t step);

 private:
  Repository(Files* files, std::unique_ptr<FileLock> lock)
      : files_(files), lock_(std::move(lock)) {}

  absl::Status CheckAreOwn(const std::vector<uint64_t>& steps) const;
  absl::Status CleanUp();
  absl::Status CleanFolder(uint64_t step);
  absl::Status SetBase(const NewCheckpoint& checkpoint);
  absl::Status WriteManifest();
  absl::Status CheckShards();
  absl::StatusOr<std::string> SetAside(uint64_t step);
  // Removes a whole checkpoint, or what is left of one: the manifest first.
  absl::Status RemoveCheckpoint(uint64_t step);

  Files* const files_;
  const std::unique_ptr<FileLock> lock_;
  std::set<uint64_t> own_steps_;
  // Of the attempt.
  absl::optional<Manifest> current_;
};

}  // namespace penstock::ps::checkpoint

#endif  // PENSTOCK_PS_CHECKPOINT_REPOSITORY_H_
