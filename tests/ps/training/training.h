// The training of a cluster of processes: its model, and what a push has.

#ifndef PENSTOCK_TESTS_PS_TRAINING_TRAINING_H_
#define PENSTOCK_TESTS_PS_TRAINING_TRAINING_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "ps/client/gradients.h"
#include "ps/client/training_connection.h"
#include "ps/model/model.h"
#include "tensor_service/tensor.h"

namespace penstock::ps {

// Each row has the gradient kGradient of one push. A row is thus 0, or
// -kGradient divided by the pushes of its synchronous step. Divisible by each
// number of workers.
inline constexpr float kGradient = 6;
inline constexpr int64_t kDenseElements = 3;

struct Staleness {
  int64_t steps = 0;
  uint32_t backup_workers = 0;
};

// Writes "0,1:-1" for a synchronous table with a backup worker and an
// asynchronous one.
std::string TextOf(const std::vector<Staleness>& policies);
std::vector<Staleness> PoliciesIn(const std::string& text);

// Returns a model with a dense and a sparse table of each staleness: "d0",
// "r0", "d1", ... Dense values are the number of steps, negative.
Model ModelOf(const std::vector<Staleness>& policies);
tensor::Bundle Zeros(size_t policies);

// The rows of one push: no other push has them.
struct PushRows {
  // By policy: a row of each server, and which of them lies where the dense
  // table is.
  std::vector<std::vector<uint64_t>> ids;
  std::vector<size_t> owners;
};
PushRows RowsOf(const TrainingConnection& connection, size_t policies,
                uint64_t push);
StepGradients GradientsOf(const PushRows& rows);

}  // namespace penstock::ps

#endif  // PENSTOCK_TESTS_PS_TRAINING_TRAINING_H_
