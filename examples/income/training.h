// Trains the weights of a logistic regression by FTRL, in several processes.

#ifndef PENSTOCK_EXAMPLES_INCOME_TRAINING_H_
#define PENSTOCK_EXAMPLES_INCOME_TRAINING_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "examples/common/progress.h"
#include "examples/income/dataset.h"

namespace penstock::income {

struct TrainingOptions {
  unsigned servers = 2;
  unsigned workers = 2;
  unsigned steps = 0;   // of each worker; 0: as many as make three passes
  unsigned batch = 32;  // examples of a worker's step
  std::string staleness = "0";  // as StalenessOf() takes it
  // Those of FTRL; see ps/optim/rule.h.
  double alpha = 0.05;
  double beta = 1;
  double lambda1 = 1;
  double lambda2 = 0;
};

// What became of it.
struct Weights {
  std::vector<uint64_t> ids;  // of the training's features, each once
  std::vector<float> values;  // in that order
  std::vector<float> test;    // of FeaturesOf(test), in its order
};

// Returns the steps that each worker makes.
unsigned StepsOf(const TrainingOptions& options, size_t examples);

// Returns which of the examples a worker computes step `step` on: all workers
// together go through them in order, and begin anew at the end.
std::vector<Example> BatchOf(absl::Span<const Example> examples, uint64_t step,
                             unsigned rank, unsigned workers, unsigned batch);

// Makes all steps of one worker. Prints a line every 25 of them: "step <steps
// done> <mean log loss of these>".
absl::Status RunWorker(const std::vector<std::string>& servers, unsigned rank,
                       const TrainingOptions& options,
                       absl::Span<const Example> train);

// Starts servers and workers (`income_worker`), and returns what they have
// trained. `on_progress` is called with what rank 0 has printed.
absl::StatusOr<Weights> Train(const TrainingOptions& options,
                              const Dataset& dataset,
                              const examples::OnProgress& on_progress);

}  // namespace penstock::income

#endif  // PENSTOCK_EXAMPLES_INCOME_TRAINING_H_
