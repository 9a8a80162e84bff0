// A server's side of checkpoints: its shards, and at server 0 their beginning
// and their end.

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
#include "ps/server/server.h"

namespace penstock::ps {

// A checkpoint is taken so: server 0 Begin()s, each server Write()s its shard,
// server 0 Commit()s. Until then there is none. All use one folder, which their
// hosts share. What is written is a server's state between two steps; training
// goes on meanwhile, and never fails because of a checkpoint.
//
// An incremental checkpoint goes on from one that this server 0 has committed
// and of which each server has written its shard. A server that was started
// anew has not, so the first checkpoint of a process is a full one.
//
// Thread-safe; one call works, and the others wait. A call takes as long as the
// disk does.
class CheckpointWriter {
 public:
  struct Options {
    // Memory for rows that change while they are written, of all sparse tables
    // together, and 1 MiB for each. If they need more, the checkpoint fails.
    // A second of pushes that each change other rows.
    size_t copy_bytes = size_t{1} << 30;
    // Of the processors' time while training goes on; see Pace.
    double share = 0.05;
    // How long Write() waits for a version.
    absl::Duration max_wait = absl::Minutes(1);
    // See checkpoint::NewCheckpoint.
    uint32_t max_depth = 16;
    // Called with a line that a person should see. If empty, the lines go to
    // Penstock's log.
    std::function<void(const std::string&)> log;
  };
  struct Attempt {
    uint64_t step = 0;
    uint64_t id = 0;
    absl::optional<uint64_t> base_step;  // of an incremental one
  };
  struct Shard {
    checkpoint::ShardInfo info;
    checkpoint::CutRecord cut;
  };
  using Clocks = std::vector<checkpoint::WorkerClock>;

  // `files` and `server` outlive it.
  CheckpointWriter(checkpoint::Files* files, Server* server, Options options);
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  // Takes the folder for this process, from before a restore on, so that what
  // is written there from then on is of one training. For server 0. Returns
  // FAILED_PRECONDITION if another process has it.
  absl::Status Claim();

  // Begins a checkpoint, and gives up one that was begun before. Takes an
  // incremental one if that is wanted and can be. Commit() will remove all but
  // the newest `keep` ones; 0: none. Its step is the highest clock that is
  // applied, or the last checkpoint's plus one if workers of lower clocks alone
  // have gone on.
  //
  // The first one removes the checkpoints newer than what was restored.
  //
  // `clocks` are the highest of all servers, so that a push that any of them
  // has counted makes a new checkpoint; nullopt: there is only this server.
  //
  // Returns FAILED_PRECONDITION if this is not server 0, another process has
  // the folder, or the folder has checkpoints of another training;
  // ALREADY_EXISTS if no step was taken since the last one.
  absl::StatusOr<Attempt> Begin(bool incremental, size_t keep,
                                const absl::optional<Clocks>& clocks = {});

  // Writes this server's shard; see Server::TakeSnapshot() for `cut`.
  // Returns FAILED_PRECONDITION if it cannot go on from the base: begin a full
  // one; OUT_OF_RANGE if the cut has passed; DEADLINE_EXCEEDED if it does
  // not come; RESOURCE_EXHAUSTED if the disk, or the memory for rows that
  // change, is full; CANCELLED once `cancellation`, if any, is cancelled.
  absl::StatusOr<Shard> Write(const Attempt& attempt,
                              absl::optional<CutPoint> cut,
                              Cancellation* cancellation = nullptr);

  // Makes it a checkpoint, of all servers' shards. Returns the steps that were
  // removed. Returns FAILED_PRECONDITION if the attempt is not the last one
  // that was begun, and DATA_LOSS if a shard is missing; then it is given up.
  absl::StatusOr<std::vector<uint64_t>> Commit(
      const Attempt& attempt, const std::vector<Shard>& shards);

  // Returns the step of the last one that was committed here; 0: none. Does not
  // wait.
  uint64_t last_step() const { return last_step_; }

  // How much of a shard Write() has written. Does not wait.
  const ShardProgress& progress() const { return progress_; }

 private:
  // A shard of this process, which an incremental one may go on from.
  struct Written {
    checkpoint::Attempt attempt;
    PartSteps part_steps;
    std::vector<uint32_t> epochs;  // by place in LocalModel::rows()
  };
  using Training = std::shared_ptr<const Server::Training>;

  absl::Status Open() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status GoOnFromRestored() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
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

  absl::Mutex mu_;
  // The oldest first.
  std::deque<Written> written_ ABSL_GUARDED_BY(mu_);

  // Of server 0, from Claim() or the first Begin() on.
  std::unique_ptr<checkpoint::Repository> repository_ ABSL_GUARDED_BY(mu_);
  bool has_gone_on_ ABSL_GUARDED_BY(mu_) = false;  // from what was restored
  absl::optional<Attempt> attempt_ ABSL_GUARDED_BY(mu_);
  size_t keep_ ABSL_GUARDED_BY(mu_) = 0;
  // The newest checkpoint of this training, be it from before a restore, and
  // its clocks.
  uint64_t newest_step_ ABSL_GUARDED_BY(mu_) = 0;
  Clocks newest_clocks_ ABSL_GUARDED_BY(mu_);
};

// Returns FAILED_PRECONDITION, naming both ways out, if `files`, of `folder`,
// have a checkpoint: a training that does not go on from it cannot write there.
absl::Status CheckUnused(checkpoint::Files* files, const std::string& folder);

// Returns the server's report, with what the writer, which may be null, has to
// tell.
ServerReport ReportOf(const Server& server, const CheckpointWriter* writer);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SERVER_CHECKPOINT_WRITER_H_
