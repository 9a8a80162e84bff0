// Checkpoints of one server: writes shards. At server 0, also begins and
// commits checkpoints.

#ifndef PENSTOCK_PS_SERVER_CHECKPOINT_WRITER_H_
#define PENSTOCK_PS_SERVER_CHECKPOINT_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "ps/checkpoint/files.h"
#include "ps/checkpoint/records.h"
#include "ps/checkpoint/shard_writer.h"
#include "ps/server/cancellation.h"
#include "ps/server/checkpoint_commits.h"
#include "ps/server/checkpoint_shard.h"
#include "ps/server/server.h"

namespace penstock::ps {

// A writer of checkpoints for one server; see CheckpointCommits for their
// steps.
//
// All servers use one folder, which their hosts share. A shard is the server's
// state between two steps of training. Training continues while a shard is
// written, and never fails because of a checkpoint.
//
// An incremental checkpoint has a base: an earlier checkpoint that this process
// of server 0 has committed. Each server must have written its shard of the
// base in its present process. The first checkpoint of a process is therefore a
// full one.
//
// Thread-safe. Calls run one at a time. A call blocks on earlier calls and on
// the disk.
class CheckpointWriter {
 public:
  // Takes a snapshot of the server; see Server::TakeSnapshot(). `cancellation`,
  // which may be null, ends its wait.
  using TakeSnapshot = std::function<absl::StatusOr<ModelSnapshot>(
      const View& view, absl::optional<CutPoint> cut,
      const SparseSnapshotOptions& options, absl::Duration timeout,
      Cancellation* cancellation)>;

  struct Options {
    // If empty, the writer calls Server::TakeSnapshot().
    TakeSnapshot take_snapshot;
    // Limits the memory for copies of rows that change while a shard is
    // written: this total for all sparse tables, plus 1 MiB for each table. The
    // checkpoint fails above the limit. The default is enough for a second of
    // pushes that each change other rows.
    size_t copy_bytes = size_t{1} << 30;
    // Limits the share of processor time that a checkpoint takes during
    // training; see checkpoint::Pace.
    double share = 0.05;
    // Limits the time that Write() waits for its cut.
    absl::Duration max_wait = absl::Minutes(1);
    CheckpointCommits::Options commits;
  };
  using Attempt = CheckpointAttempt;
  using Begun = CheckpointBegun;
  using Shard = CheckpointShard;
  using Clocks = CheckpointClocks;

  // `files` and `server` outlive the writer.
  CheckpointWriter(checkpoint::Files* files, Server* server, Options options);
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  // Claims the folder; see CheckpointCommits.
  absl::Status Claim() { return commits_.Claim(); }
  absl::Status Lock() { return commits_.Lock(); }
  absl::StatusOr<Begun> Begin(const CheckpointRequest& request) {
    return commits_.Begin(request);
  }
  absl::Status Renew(const Attempt& attempt) { return commits_.Renew(attempt); }
  void EndTurn(const Attempt& attempt) { commits_.EndTurn(attempt); }
  void RecordFailure(absl::string_view why) { commits_.RecordFailure(why); }
  void GiveUp(const Attempt& attempt) { commits_.GiveUp(attempt); }
  absl::StatusOr<std::vector<uint64_t>> Commit(
      const Attempt& attempt, const std::vector<Shard>& shards) {
    return commits_.Commit(attempt, shards);
  }
  // Releases the folder for another process; see CheckpointCommits.
  void Release() { commits_.Release(); }
  CheckpointCommits* commits() { return &commits_; }
  const CheckpointHealth& health() const { return commits_.health(); }

  // Writes this server's shard of the checkpoint `attempt`; see
  // Server::TakeSnapshot() for `cut`. Fails with:
  //   DATA_LOSS, ABORTED   this server has not, or no more, the training
  //   NOT_FOUND            this server lacks the base: begin a full checkpoint
  //   OUT_OF_RANGE         the server is past the cut
  //   DEADLINE_EXCEEDED    the server did not reach the cut in time
  //   RESOURCE_EXHAUSTED   the disk, or copy_bytes, is full
  //   CANCELLED            `cancellation`, which may be null, was cancelled
  absl::StatusOr<Shard> Write(const Attempt& attempt,
                              absl::optional<CutPoint> cut,
                              Cancellation* cancellation = nullptr);

  // Returns the progress of Write(). Does not block.
  const ShardProgress& progress() const { return progress_; }

 private:
  // A shard that this process wrote. A later, incremental checkpoint may have
  // this shard as its base.
  struct Written {
    checkpoint::Attempt attempt;
    PartSteps part_steps;
    std::vector<uint32_t> epochs;  // by place in LocalModel::rows()
  };

  absl::StatusOr<const Written*> FindBase(const Attempt& attempt,
                                          Tables* tables)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  SparseSnapshotOptions SparseOptions(const Tables& tables,
                                      const Written* base) const;
  absl::StatusOr<Shard> WriteShard(const Attempt& attempt,
                                   const Server::Training& training,
                                   const Written* base, ModelSnapshot snapshot,
                                   const Cancellation* cancellation);

  checkpoint::Files* const files_;
  Server* const server_;
  const Options options_;
  ShardProgress progress_;
  CheckpointCommits commits_;

  absl::Mutex mu_;
  uint64_t run_ ABSL_GUARDED_BY(mu_) = 0;  // of written_
  // The written checkpoints, from the oldest to the newest.
  std::deque<Written> written_ ABSL_GUARDED_BY(mu_);
};

// Returns the server's report. Fields about checkpoints come from `writer`,
// which may be null.
ServerReport ReportOf(const Server& server, const CheckpointWriter* writer);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SERVER_CHECKPOINT_WRITER_H_
