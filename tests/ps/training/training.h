// Defines the training of whole clusters: the model, and the gradients of a
// push. The values show which pushes were applied.

#ifndef PENSTOCK_TESTS_PS_TRAINING_TRAINING_H_
#define PENSTOCK_TESTS_PS_TRAINING_TRAINING_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ps/client/gradients.h"
#include "ps/client/training_connection.h"
#include "ps/model/model.h"
#include "tensor_service/tensor.h"

namespace penstock::ps {

// The gradient of each row. Any number of workers divides it without a
// remainder. Only one push has a gradient for a row. The row's value is
// therefore 0, or -kGradient divided by the number of pushes in its synchronous
// step.
inline constexpr float kGradient = 6;
inline constexpr int64_t kDenseElements = 3;
// The number of ids for each push. Push p uses ids from p * kIdsPerPush on.
inline constexpr uint64_t kIdsPerPush = 1000;

struct Staleness {
  int64_t steps = 0;
  uint32_t backup_workers = 0;
};

// Returns a model with a dense and a sparse table of each staleness: "d0",
// "r0", "d1" and so on. A dense value is minus the number of steps.
Model ModelOf(const std::vector<Staleness>& policies);
tensor::Bundle Zeros(size_t policies);

// The ids of the rows of one push, by policy and server. No other push has
// these rows.
using PushIds = std::vector<std::vector<uint64_t>>;
PushIds IdsOf(const TrainingConnection& connection, size_t policies,
              uint64_t push);
// Returns gradients for all tables of all servers.
StepGradients GradientsOf(const PushIds& ids);

}  // namespace penstock::ps

#endif  // PENSTOCK_TESTS_PS_TRAINING_TRAINING_H_
