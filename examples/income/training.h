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
  unsigned steps = 0;           // per worker; 0 selects three passes
  unsigned batch = 32;          // examples per worker and step
  std::string staleness = "0";  // in the notation of StalenessOf()
  // The parameters of FTRL; see ps/optim/rule.h.
  double alpha = 0.05;
  double beta = 1;
  double lambda1 = 1;
  double lambda2 = 0;
};

// The trained weights.
struct Weights {
  std::vector<uint64_t> ids;  // the training's features, each once
  std::vector<float> values;  // in the order of `ids`
  std::vector<float> test;    // in the order of FeaturesOf(test)
};

// Returns the number of steps of each worker.
unsigned StepsOf(const TrainingOptions& options, size_t examples);

// Returns the examples of one worker's step. All workers together iterate over
// the examples in order, repeatedly.
std::vector<Example> BatchOf(absl::Span<const Example> examples, uint64_t step,
                             unsigned rank, unsigned workers, unsigned batch);

// Runs one worker until its last step. Prints a line every 25 steps: "step
// <steps done> <mean log loss of these>".
absl::Status RunWorker(const std::vector<std::string>& servers, unsigned rank,
                       const TrainingOptions& options,
                       absl::Span<const Example> train);

// Starts servers and workers (`income_worker`), and returns the trained
// weights. Calls `on_progress` for the lines of rank 0.
absl::StatusOr<Weights> Train(const TrainingOptions& options,
                              const Dataset& dataset,
                              const examples::OnProgress& on_progress);

}  // namespace penstock::income

#endif  // PENSTOCK_EXAMPLES_INCOME_TRAINING_H_
