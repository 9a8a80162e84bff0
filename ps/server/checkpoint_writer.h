// Checkpoints of one server: writes shards, and at server 0 begins and commits
// checkpoints.

#ifndef PENSTOCK_PS_SERVER_CHECKPOINT_WRITER_H_
#define PENSTOCK_PS_SERVER_CHECKPOINT_WRITER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "ps/checkpoint/files.h"
#include "ps/checkpoint/records.h"
#include "ps/checkpoint/repository.h"
#include "ps/checkpoint/shard_writer.h"
#include "ps/server/cancellation.h"
#include "ps/server/checkpoint_shard.h"
#include "ps/server/checkpoint_turn.h"
#include "ps/server/server.h"

namespace penstock::ps {

// A writer of checkpoints for one server. A checkpoint takes three steps:
//   1. Server 0 calls Begin().
//   2. Each server calls Write() for its shard. Meanwhile the caller renews its
//      turn at server 0.
//   3. Server 0 calls Commit(). The checkpoint exists from then on.
//
// One caller at a time has its turn. An attempt without a renewal for
// Options::lease is given up when another caller begins.
//
// All servers use one folder, which their hosts share. A shard has the server's
// state between two steps of training. Training goes on while a shard is
// written, and never fails because of a checkpoint.
//
// An incremental checkpoint has a base: an earlier checkpoint that this process
// of server 0 has committed. Each server must have written its shard of the
// base in its present process. The first checkpoint of a process is therefore a
// full one.
//
// Thread-safe. Calls run one at a time; the others wait. A call blocks for as
// long as the disk takes.
class CheckpointWriter {
 public:
  struct Options {
    // Limits the memory for copies of rows that change while a shard is
    // written: the total of all sparse tables, plus 1 MiB for each. The
    // checkpoint fails above the limit. The default is enough for a second of
    // pushes that each change other rows.
    size_t copy_bytes = size_t{1} << 30;
    // Limits the share of processor time during training; see Pace.
    double share = 0.05;
    // Limits the time for which a caller that is silent keeps its turn.
    absl::Duration lease = absl::Seconds(30);
    // Limits the time that Write() waits for its cut.
    absl::Duration max_wait = absl::Minutes(1);
    // Limits the length of a chain; see checkpoint::NewCheckpoint.
    uint32_t max_depth = 16;
    // Called with each line for the operator. If empty, the lines go to
    // Penstock's log.
    std::function<void(const std::string&)> log;
  };
  struct Attempt {
    uint64_t step = 0;
    uint64_t id = 0;
    absl::optional<uint64_t> base_step;  // nullopt: a full checkpoint
  };
  struct Begun {
    enum class State {
      kBegun,      // the caller has its turn, and writes `attempt`
      kRunning,    // another caller writes `attempt`: begin again later
      kCommitted,  // `attempt` is committed, and has everything
    };
    State state = State::kBegun;
    Attempt attempt;
    uint64_t bytes = 0;  // of a committed attempt
  };
  struct Shard {
    checkpoint::ShardInfo info;
    checkpoint::CutRecord cut;
  };
  using Clocks = std::vector<checkpoint::WorkerClock>;

  // `files` and `server` outlive the writer.
  CheckpointWriter(checkpoint::Files* files, Server* server, Options options);
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  // Locks the folder for this process, at server 0. Call before a restore, so
  // that later checkpoints in the folder are of one training. Returns
  // FAILED_PRECONDITION if another process has locked the folder.
  absl::Status Claim();

  // Begins a checkpoint, unless another caller has its turn. Begins an
  // incremental checkpoint if `incremental` is true and there is a base; else a
  // full one. `has_waited` is true if the caller got kRunning before: returns
  // kCommitted instead of ALREADY_EXISTS.
  // Commit() will remove all but the newest `keep` checkpoints; 0: removes
  // none. The first call removes the checkpoints newer than the restored one.
  //
  // The step of the checkpoint is the highest applied clock. If only workers
  // with lower clocks have pushed, the step is the last checkpoint's plus one.
  //
  // `clocks` are the highest clocks of all servers, so that a push that counted
  // at any server allows a new checkpoint. nullopt: this is the only server.
  //
  // Fails with:
  //   FAILED_PRECONDITION  this is not server 0; another process has locked the
  //                        folder; or the folder has another training
  //   ALREADY_EXISTS       no step was taken since the last checkpoint
  absl::StatusOr<Begun> Begin(bool incremental, size_t keep,
                              const absl::optional<Clocks>& clocks = {},
                              bool has_waited = false);

  // Renews the turn of the caller that began `attempt`. Does not block. Returns
  // ABORTED if the attempt is not the current one.
  absl::Status Renew(const Attempt& attempt);

  // Ends an attempt that its caller does not finish, and removes its files.
  // Ignores an attempt that is not the current one.
  void GiveUp(const Attempt& attempt);

  // Writes this server's shard; see Server::TakeSnapshot() for `cut`. Fails
  // with:
  //   NOT_FOUND            this server lacks the base: begin a full checkpoint
  //   OUT_OF_RANGE         the server is past the cut
  //   DEADLINE_EXCEEDED    the server did not reach the cut in time
  //   RESOURCE_EXHAUSTED   the disk, or copy_bytes, is full
  //   CANCELLED            `cancellation`, which may be null, was cancelled
  absl::StatusOr<Shard> Write(const Attempt& attempt,
                              absl::optional<CutPoint> cut,
                              Cancellation* cancellation = nullptr);

  // Commits the attempt, with the shards of all servers. Returns the steps of
  // the removed checkpoints. Returns ABORTED if the attempt was given up.
  // Returns DATA_LOSS, and gives the attempt up, if a shard is missing.
  absl::StatusOr<std::vector<uint64_t>> Commit(
      const Attempt& attempt, const std::vector<Shard>& shards);

  // Returns the step of the last checkpoint that this process committed for the
  // present run; 0: none. Does not block.
  uint64_t last_step() const { return last_step_; }

  // Returns the progress of Write(). Does not block.
  const ShardProgress& progress() const { return progress_; }

 private:
  // A shard that this process wrote, and that may be a base.
  struct Written {
    checkpoint::Attempt attempt;
    PartSteps part_steps;
    std::vector<uint32_t> epochs;  // by place in LocalModel::rows()
  };
  using Training = std::shared_ptr<const Server::Training>;

  absl::Status Open() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Forgets the checkpoints of an earlier run, whose tables are gone.
  void BeginRun(uint64_t run) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status GoOnFromRestored() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status Prepare(const Server::Training& training)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::StatusOr<Begun> BeginNext(const Server::Training& training,
                                  const Clocks& clocks, bool incremental)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void EndAttempt() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::StatusOr<checkpoint::NewCheckpoint> Describe(
      const Server::Training& training, const Clocks& clocks) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::StatusOr<const Written*> FindBase(const Attempt& attempt,
                                          Tables* tables)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  SparseSnapshotOptions SparseOptions(const Tables& tables,
                                      const Written* base) const;
  absl::StatusOr<ModelSnapshot> TakeSnapshot(
      absl::optional<CutPoint> cut, const SparseSnapshotOptions& sparse,
      Cancellation* cancellation) const;
  absl::StatusOr<Shard> WriteShard(const Attempt& attempt,
                                   const Server::Training& training,
                                   const Written* base, ModelSnapshot snapshot,
                                   const Cancellation* cancellation);
  std::vector<uint64_t> Prune() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Log(const std::string& line) const;

  checkpoint::Files* const files_;
  Server* const server_;
  const Options options_;
  std::atomic<uint64_t> last_step_{0};
  ShardProgress progress_;
  CheckpointTurn turn_;

  absl::Mutex mu_;
  uint64_t run_ ABSL_GUARDED_BY(mu_) = 0;  // of the members below
  // Ordered from the oldest to the newest.
  std::deque<Written> written_ ABSL_GUARDED_BY(mu_);

  // Null until Claim() or the first Begin(), and at servers other than 0.
  std::unique_ptr<checkpoint::Repository> repository_ ABSL_GUARDED_BY(mu_);
  // True once GoOnFromRestored() has succeeded.
  bool has_gone_on_ ABSL_GUARDED_BY(mu_) = false;
  absl::optional<Attempt> attempt_ ABSL_GUARDED_BY(mu_);
  size_t keep_ ABSL_GUARDED_BY(mu_) = 0;
  // This training's newest checkpoint, which may be the restored one. Step 0:
  // none.
  Begun newest_ ABSL_GUARDED_BY(mu_);
  Clocks newest_clocks_ ABSL_GUARDED_BY(mu_);
};

// Returns the server's report, with the fields about checkpoints from `writer`,
// which may be null.
ServerReport ReportOf(const Server& server, const CheckpointWriter* writer);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SERVER_CHECKPOINT_WRITER_H_
