// The training that one server holds, and its definition.

#ifndef PENSTOCK_PS_SERVER_TRAINING_H_
#define PENSTOCK_PS_SERVER_TRAINING_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "ps/consistency/coordinator.h"
#include "ps/model/model.h"
#include "ps/server/model_snapshot.h"
#include "ps/server/tables.h"

namespace penstock::ps {

// The training of one server. Immutable, except for the values.
struct Training {
  uint64_t run = 0;
  uint32_t server = 0;
  absl::optional<CutId> cut;  // restored; nullopt: none
  uint64_t hash_seed = 0;     // of the tables
  std::shared_ptr<Tables> tables;
};

struct ServerDefinition {
  Model model;
  std::vector<std::string> servers;
  uint32_t server = 0;
  uint64_t run = 0;
  absl::optional<CutId> cut;  // to restore
  uint64_t replaces = 0;      // a run that this one may replace; 0: none
  bool abandons = false;      // also replaces a run with counted pushes
  uint64_t instance = 0;      // of the server; 0: any
};

// Gives a server its first values from a folder of checkpoints.
class RestoreSource {
 public:
  virtual ~RestoreSource() = default;
  // Returns the cut with which all servers begin. Returns nullopt if there is
  // no checkpoint. With `verifies`, first reads all bytes of the checkpoint,
  // and skips damaged checkpoints. Otherwise, Restore() may find damage.
  virtual absl::StatusOr<absl::optional<CutId>> Choose(bool verifies) = 0;
  // Returns OK if this server can begin with `cut`. A `cut` of nullopt requires
  // a folder without checkpoints. Otherwise returns FAILED_PRECONDITION, with
  // the content of the folder.
  virtual absl::Status Check(const absl::optional<CutId>& cut) = 0;
  // Puts the values of `cut` into `tables`. Returns DATA_LOSS if the checkpoint
  // is damaged.
  virtual absl::StatusOr<RestoredModel> Restore(const CutId& cut,
                                                Tables* tables) = 0;
};

// Returns a text for messages: "step-0000000060 (cut 1f2e)", or "no
// checkpoint".
std::string TextOf(const absl::optional<CutId>& cut);

struct TrainingLimits {
  Tables::Options tables;
  // The number of workers. A synchronous step needs the gradients of all
  // workers in memory together.
  uint32_t workers = 1;
  size_t max_held_bytes = 0;  // the bytes of gradients
};

bool HasSynchronousTable(const Model& model);

// Creates the training of a server, without values. Returns INVALID_ARGUMENT
// for an invalid definition, and RESOURCE_EXHAUSTED above a limit.
absl::StatusOr<std::shared_ptr<Training>> MakeTraining(
    const ServerDefinition& definition, const TrainingLimits& limits);

// Returns OK if `training` agrees with `definition`, apart from the run.
// Otherwise returns FAILED_PRECONDITION, with the first difference.
absl::Status CheckSame(const Training& training,
                       const ServerDefinition& definition);

// Returns the options of the training's coordinator, which continues from
// `restored`.
Coordinator::Options CoordinatorOptionsOf(const Training& training,
                                          const RestoredModel& restored);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SERVER_TRAINING_H_
