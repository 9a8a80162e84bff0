// Evaluates a model while others train it.

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
  uint64_t every = 100;  // minimal number of steps between evaluations
  // The time between two checks of the workers' progress and presence.
  absl::Duration check_interval = absl::Seconds(2);
  // Limits the time without a new step, after which the training counts as
  // hung.
  absl::Duration patience = absl::Minutes(5);
};

// A function that evaluates the variables after at least `steps` steps.
// If it fails, Evaluate() ends with its error.
using EvaluateFn =
    std::function<absl::Status(uint64_t steps, const tensor::Bundle&)>;

// Calls `evaluate` from time to time, and with the last values. Returns when
// the training ends: at its last step, or when no worker is left. Returns
// DEADLINE_EXCEEDED after `patience`, or if a server cannot be reached.
absl::Status Evaluate(const EvaluatorOptions& options, ps::Reader* reader,
                      const EvaluateFn& evaluate);

}  // namespace penstock::digits

#endif  // PENSTOCK_EXAMPLES_DIGITS_EVALUATOR_H_
