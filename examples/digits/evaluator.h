// Watches a training run from outside.

#ifndef PENSTOCK_EXAMPLES_DIGITS_EVALUATOR_H_
#define PENSTOCK_EXAMPLES_DIGITS_EVALUATOR_H_

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "ps/client/reader.h"
#include "tensor_service/tensor.h"

namespace penstock::digits {

struct EvaluatorOptions {
  uint64_t steps = 0;    // the length of the training
  uint64_t every = 100;  // least number of steps between evaluations
  // How often to check how far the workers are, and whether they have left.
  absl::Duration check_interval = absl::Seconds(2);
  // How long to wait for a step before the training counts as hung.
  absl::Duration patience = absl::Minutes(5);
};

// Evaluates what so many steps have made, or more. An error ends Evaluate(),
// which returns it.
using EvaluateFn =
    std::function<absl::Status(uint64_t steps, const tensor::Bundle&)>;

// Calls `evaluate` now and then, and with the last values. Returns
// when the training ends: at its last step, or when no worker is left. Returns
// DEADLINE_EXCEEDED after `patience`, or if a server cannot be reached.
absl::Status Evaluate(const EvaluatorOptions& options, ps::Reader* reader,
                      const EvaluateFn& evaluate);

}  // namespace penstock::digits

#endif  // PENSTOCK_EXAMPLES_DIGITS_EVALUATOR_H_
