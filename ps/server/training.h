// What one server is defined as.

#ifndef PENSTOCK_PS_SERVER_TRAINING_H_
#define PENSTOCK_PS_SERVER_TRAINING_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
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
  uint64_t restore_step = 0;  // 0: the newest good one
};

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
