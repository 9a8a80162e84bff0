// A training in this process: servers, their checkpoints, and workers that call
// them directly.

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

// By table: all elements of a dense one, rows by id of a sparse one.
struct TableValues {
  std::map<std::string, std::vector<float>> dense;
  std::map<std::string, std::map<uint64_t, std::vector<float>>> rows;
};

// All that there is: the elements of dense tables and of each of their slots,
// rows with their slots and counts, steps.
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
  struct Options {
    size_t servers = 1;
    uint32_t workers = 1;
    bool restore = false;
    uint64_t step = 0;  // to restore; 0: the newest
    bool drop_tables = false;
    CheckpointWriter::Options checkpoints;
    std::function<std::unique_ptr<sparse::Tier>()> new_tier;
  };

  // Tables are of f32. `files` outlive it.
  SmallTraining(Model model, checkpoint::Files* files, const Options& options);

  // Defines the model at all servers, the first of them first, as a chief does.
  // Returns the step that was restored.
  absl::StatusOr<uint64_t> Define();
  // Joins all workers, and gives dense tables that `first` does not have zeros.
  absl::Status Begin(const TableValues& first = {});

  // Hands over a step of a worker at all servers, and does not wait for it.
  absl::Status Push(uint32_t worker, const TableValues& gradients);
  // Waits until the steps of all workers are applied, if tables are
  // synchronous.
  absl::Status Settle();
  // Returns the sum of what the servers have, which should be at rest.
  TrainingState State();

  // Takes a checkpoint, of the version that synchronous tables are at.
  absl::StatusOr<uint64_t> Checkpoint(bool incremental = false,
                                      size_t keep = 0);
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
