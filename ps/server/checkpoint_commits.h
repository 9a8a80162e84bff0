// Begins and commits the checkpoints of a training, at server 0.

#ifndef PENSTOCK_PS_SERVER_CHECKPOINT_COMMITS_H_
#define PENSTOCK_PS_SERVER_CHECKPOINT_COMMITS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "ps/checkpoint/files.h"
#include "ps/checkpoint/manifest.h"
#include "ps/checkpoint/records.h"
#include "ps/checkpoint/repository.h"
#include "ps/server/checkpoint_clocks.h"
#include "ps/server/checkpoint_health.h"
#include "ps/server/checkpoint_turn.h"
#include "ps/server/server.h"

namespace penstock::ps {

struct CheckpointAttempt {
  View view;  // the training to save
  uint64_t step = 0;
  uint64_t id = 0;
  absl::optional<uint64_t> base_step;  // nullopt: a full checkpoint
};

struct CheckpointBegun {
  enum class State {
    kBegun,      // the caller has its turn, and writes `attempt`
    kRunning,    // another caller writes `attempt`: begin again later
    kCommitted,  // `attempt` is committed, and has everything
  };
  State state = State::kBegun;
  CheckpointAttempt attempt;
  uint64_t bytes = 0;  // of a committed attempt
};

struct CheckpointShard {
  checkpoint::ShardInfo info;
  checkpoint::CutRecord cut;
};

struct CheckpointRequest {
  View view;                 // the training that the checkpoint is of
  bool incremental = false;  // if there is an undamaged base
  // The number of the newest checkpoints to keep. 0: removes none.
  size_t keep = 0;
  // The highest clock of each worker at any server. A clock above that of the
  // last checkpoint means that there are new values to save.
  CheckpointClocks clocks = {};
  // True if Begin() has returned kRunning to this caller before.
  bool has_waited = false;
};

// Begins and commits the checkpoints of a training. A checkpoint takes three
// steps:
//   1. Server 0 calls Begin().
//   2. Each server calls CheckpointWriter::Write() for its shard. Meanwhile the
//      caller renews its turn at server 0.
//   3. Server 0 calls Commit(). The checkpoint exists from then on.
//
// One caller at a time has its turn. An attempt that is not renewed for
// Options::lease is abandoned when another caller begins.
//
// If the folder, or checkpoints in the folder, were removed from outside, the
// next checkpoint is a full one, and a warning says so. A folder with
// checkpoints of another training is never written to.
//
// Thread-safe. Calls run one at a time. A call blocks on earlier calls and on
// the disk.
class CheckpointCommits {
 public:
  using Attempt = CheckpointAttempt;
  using Begun = CheckpointBegun;
  using Clocks = CheckpointClocks;

  struct Options {
    // Limits the time for which a silent caller keeps its turn.
    absl::Duration lease = absl::Seconds(30);
    // Limits the length of a chain; see checkpoint::NewCheckpoint.
    uint32_t max_depth = 16;
    // Limits the share of time for which server 0 reads bases to find damage.
    double verify_share = 0.1;
    // True if another process may have begun this run and written checkpoints
    // of it: the former primary of the shard.
    bool continues_run = false;
    // The object that has the lock of the folder until this object takes it
    // over. May be null. Must outlive this object.
    CheckpointCommits* holder = nullptr;
    // Called with each line for the operator. If empty, the lines are warnings
    // in Penstock's log.
    std::function<void(const std::string&)> log;
  };

  // `files` and `server` outlive this object.
  CheckpointCommits(checkpoint::Files* files, Server* server, Options options);

  // Locks the folder for this process, at server 0. Call before a restore, so
  // that later checkpoints in the folder are of one training. Returns
  // FAILED_PRECONDITION if another process has locked the folder.
  absl::Status Claim() ABSL_LOCKS_EXCLUDED(mu_);
  // Locks the folder like Claim(). Returns UNAVAILABLE if Release() was called.
  absl::Status Lock() ABSL_LOCKS_EXCLUDED(mu_);

  // Begins a checkpoint, unless another caller has its turn. For an incremental
  // checkpoint, reads every byte of the base, unless Options permit no time for
  // this check. The first call sets aside the checkpoints newer than the
  // restored one, unless another process has written them for the same run.
  //
  // The step of the checkpoint is the highest applied clock. If only workers
  // with lower clocks have pushed, the step is one higher than that of the last
  // checkpoint.
  //
  // Returns kCommitted to a caller that has waited for a checkpoint without new
  // values; other callers get ALREADY_EXISTS. Fails with:
  //   If there are no new values, returns kCommitted to a caller with
  //   `has_waited`, and ALREADY_EXISTS to others. Fails with:
  //   FAILED_PRECONDITION  this is not server 0; another process has locked the
  //                        folder; the folder has another training, or has lost
  //                        its checkpoints
  //   ALREADY_EXISTS       no step was taken since the last checkpoint
  absl::StatusOr<Begun> Begin(const CheckpointRequest& request)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Renews the turn of the caller that began `attempt`. Does not block. Returns
  // ABORTED if the attempt is not the current one.
  absl::Status Renew(const Attempt& attempt);

  // Ends the turn of the caller that began `attempt`; the next Begin() abandons
  // the attempt. Does not block. Does nothing if the attempt is not the current
  // one.
  void EndTurn(const Attempt& attempt) { turn_.End(attempt.id); }

  // Records a failed checkpoint, and logs the reason. Does not block on a disk.
  void RecordFailure(absl::string_view why);

  // Abandons an attempt, and removes its files. Ignores an attempt that is not
  // the current one.
  void GiveUp(const Attempt& attempt) ABSL_LOCKS_EXCLUDED(mu_);

  // Commits the attempt, with the shards of all servers. Returns the steps of
  // the removed checkpoints. Returns ABORTED if the attempt was abandoned, or
  // if the server now has another run. Returns DATA_LOSS, and abandons the
  // attempt, if a shard is missing. Also works while the server drains, because
  // all values are already written.
  absl::StatusOr<std::vector<uint64_t>> Commit(
      const Attempt& attempt, const std::vector<CheckpointShard>& shards)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Abandons the attempt, and unlocks the folder for another process. From then
  // on, Begin() returns UNAVAILABLE until Claim().
  void Release() ABSL_LOCKS_EXCLUDED(mu_);

  const CheckpointHealth& health() const { return health_; }

 private:
  absl::Status CheckNotReleased() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status Open() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Releases the folder. Returns the repository, which still has the lock, or
  // null.
  std::unique_ptr<checkpoint::Repository> Yield() ABSL_LOCKS_EXCLUDED(mu_);
  // Forgets the checkpoints of an earlier run, whose tables no longer exist.
  void BeginRun(uint64_t run) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status Prepare(const Server::Training& training)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status GoOnFrom(const Server::Training& training)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Continues from the newest checkpoint if this run has written it. Returns
  // false otherwise.
  bool GoOnFromOwn(uint64_t run) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool IsNewestLost() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool IsGoodBase(uint64_t step) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::StatusOr<Begun> BeginNext(const Server::Training& training,
                                  uint64_t clock, absl::optional<uint64_t> base)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::StatusOr<checkpoint::NewCheckpoint> Describe(
      const Server::Training& training, uint64_t clock) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Updates the contents of the folder in health_.
  void Measure() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void EndAttempt() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::vector<uint64_t> Prune() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Log(const std::string& line) const;

  checkpoint::Files* const files_;
  Server* const server_;
  const Options options_;
  CheckpointTurn turn_;
  CheckpointHealth health_;

  absl::Mutex mu_;
  // Null until Claim() or the first Begin(), and at servers other than 0.
  std::unique_ptr<checkpoint::Repository> repository_ ABSL_GUARDED_BY(mu_);
  bool is_released_ ABSL_GUARDED_BY(mu_) = false;
  uint64_t run_ ABSL_GUARDED_BY(mu_) = 0;  // of the members below
  // True once GoOnFrom() has succeeded.
  bool has_gone_on_ ABSL_GUARDED_BY(mu_) = false;
  absl::optional<Attempt> attempt_ ABSL_GUARDED_BY(mu_);
  size_t keep_ ABSL_GUARDED_BY(mu_) = 0;
  // The newest checkpoint of this training, which may be the restored one. Step
  // 0 means none.
  Begun newest_ ABSL_GUARDED_BY(mu_);
  Clocks newest_clocks_ ABSL_GUARDED_BY(mu_);
  bool has_committed_ ABSL_GUARDED_BY(mu_) = false;  // newest_, in this process
  absl::Time next_verification_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SERVER_CHECKPOINT_COMMITS_H_
