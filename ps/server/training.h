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

// Immutable, but for the values.
struct Training {
  uint64_t run = 0;
  uint32_t server = 0;
  std::shared_ptr<Tables> tables;
};

struct ServerDefinition {
  Model model;
  std::vector<std::string> servers;
  uint32_t server = 0;
  uint64_t run = 0;
  absl::optional<CutId> cut;  // to restore
  uint64_t replaces = 0;      // a run that this one may replace; 0: none
};

// Gives a server its first values from a folder of checkpoints.
class RestoreSource {
 public:
  virtual ~RestoreSource() = default;
  // Returns the cut that all servers are to begin with, after all of its bytes
  // were found good; nullopt if there is no checkpoint.
  virtual absl::StatusOr<absl::optional<CutId>> Choose() = 0;
  // Returns FAILED_PRECONDITION, with what the folder has, unless this server
  // can begin with `cut`: one without a cut needs a folder without checkpoints.
  virtual absl::Status Check(const absl::optional<CutId>& cut) = 0;
  virtual absl::StatusOr<RestoredModel> Restore(const CutId& cut,
                                                Tables* tables) = 0;
};

// For messages: "step-0000000060 (cut 1f2e)", or "no checkpoint".
std::string TextOf(const absl::optional<CutId>& cut);

struct TrainingLimits {
  Tables::Options tables;
  uint32_t workers = 1;       // whose gradients a synchronous step needs
  size_t max_held_bytes = 0;  // of gradients
};

// Returns the training that a server is to hold, without values. Returns
// INVALID_ARGUMENT for one that cannot be, and RESOURCE_EXHAUSTED above a
// limit.
absl::StatusOr<std::shared_ptr<Training>> MakeTraining(
    const ServerDefinition& definition, const TrainingLimits& limits);

// Returns FAILED_PRECONDITION, with the difference, unless `training` is what
// `definition` says. Their runs may differ.
absl::Status CheckSame(const Training& training,
                       const ServerDefinition& definition);

// Returns how pushes and pulls of the training begin, given what was restored.
Coordinator::Options CoordinatorOptionsOf(const Training& training,
                                          const RestoredModel& restored);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SERVER_TRAINING_H_
