// Runs a training in this process: servers, their checkpoints, and workers that
// call them directly.

#ifndef PENSTOCK_TESTS_PS_SERVER_SMALL_TRAINING_H_
#define PENSTOCK_TESTS_PS_SERVER_SMALL_TRAINING_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ps/checkpoint/files.h"
#include "ps/model/model.h"
#include "ps/server/checkpoint_writer.h"
#include "ps/server/server.h"

namespace penstock::ps {

// The values by table: all elements of a dense table, or the rows of a sparse
// table by id.
struct TableValues {
  std::map<std::string, std::vector<float>> dense;
  std::map<std::string, std::map<uint64_t, std::vector<float>>> rows;
};

// The whole state: the elements of dense tables and of their slots, rows with
// their slots and counts, and steps.
struct TrainingState {
  std::map<std::string, std::vector<float>> dense;  // "w", "w/m"
  std::map<std::string, std::map<uint64_t, std::vector<float>>> rows;
  std::map<std::string, uint64_t> steps;

  bool operator==(const TrainingState& other) const {
    return dense == other.dense && rows == other.rows && steps == other.steps;
  }
};

class SmallTraining {
 public:
  static CheckpointWriter::Options WithoutLease() {
    CheckpointWriter::Options options;
    options.commits.lease = absl::ZeroDuration();
    options.commits.verify_share = 1;  // each checkpoint is a base
    return options;
  }
  struct Options {
    size_t servers = 1;
    uint32_t workers = 1;
    bool restore = false;
    uint64_t step = 0;  // to restore; 0: the newest
    bool drop_tables = false;
    bool drop_rows = false;
    std::function<void(const std::string&)> restore_log;
    // The options of checkpoints. There is no lease: each attempt ends the
    // previous attempt.
    CheckpointWriter::Options checkpoints = WithoutLease();
    std::function<std::unique_ptr<sparse::Tier>()> new_tier;
  };

  // Starts the servers. All tables must be f32. `files` outlive the training.
  SmallTraining(Model model, checkpoint::Files* files, const Options& options);

  // Defines the model at all servers in order, like a chief. Returns the
  // restored step.
  absl::StatusOr<uint64_t> Define();
  // Joins all workers. Sets dense tables that `first` lacks to zeros.
  absl::Status Begin(const TableValues& first = {});

  // Pushes a step of a worker to all servers. Does not wait for the answers. If
  // `will_help` is true, the servers leave small steps to Help() for a moment.
  absl::Status Push(uint32_t worker, const TableValues& gradients,
                    bool will_help = false);
  // Waits until the steps of all workers are applied, if tables are
  // synchronous.
  absl::Status Settle();
  // Returns the combined state of the servers. Call only while no step is in
  // progress.
  TrainingState State();

  // Takes a checkpoint at the current version of the synchronous tables.
  absl::StatusOr<uint64_t> Checkpoint(bool incremental = false,
                                      size_t keep = 0);
  // Begins a checkpoint at server 0, and does not wait for its end.
  absl::StatusOr<CheckpointWriter::Attempt> BeginAttempt(
      bool incremental = false, size_t keep = 0);
  absl::StatusOr<std::vector<CheckpointWriter::Shard>> WriteShards(
      const CheckpointWriter::Attempt& attempt);

  Server& server(size_t at) { return *servers_[at]; }
  CheckpointWriter& writer(size_t at) { return *writers_[at]; }
  View view() const { return {kRun, 1}; }
  uint64_t clock(uint32_t worker) const { return clocks_[worker]; }

 private:
  static constexpr uint64_t kRun = 7;

  Tables& tables(size_t at) { return *servers_[at]->training()->tables; }
  WorkerId Id(uint32_t worker) const { return {worker, incarnation_}; }
  tensor::Bundle PartsOf(const Tables& tables, const TableValues& values,
                         bool all) const;
  void AddRows(const Tables& tables, const TableValues& gradients,
               tensor::Bundle* bundle) const;
  void AddParts(const Tables& tables, TrainingState* state) const;
  void AddTables(Tables* tables, TrainingState* state) const;

  const Model model_;
  const Options options_;
  const uint64_t incarnation_;
  std::vector<std::unique_ptr<Server>> servers_;
  std::vector<std::unique_ptr<CheckpointWriter>> writers_;
  std::vector<uint64_t> clocks_;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_TESTS_PS_SERVER_SMALL_TRAINING_H_
