// One training run in processes of its own, watched from outside.

#ifndef PENSTOCK_EXAMPLES_DIGITS_TRAINING_H_
#define PENSTOCK_EXAMPLES_DIGITS_TRAINING_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"

namespace penstock::digits {

struct RunOptions {
  unsigned servers = 2;
  unsigned workers = 2;
  unsigned steps = 1500;
  unsigned batch = 32;
  int hidden = 512;
  double learning_rate = 0.2;
  unsigned seed = 1;
  bool stock = false;  // stock gRPC over TCP instead of Penstock
};

struct RunResult {
  std::string path;   // what carried the chief's first connection
  double accuracy;    // on the held-out digits, 0 to 1
  double final_loss;  // on the training digits, nats
  // Medians over all workers and steps, without the first ones; microseconds,
  // the wait at the barrier apart.
  double pull_us;
  double push_us;
  double wait_us;
  double seconds;  // from the first server's start to the last worker's end
};

// Called with the steps that the chief has done and its loss.
using Progress = std::function<void(unsigned steps_done, double loss)>;

// Starts the servers, each on a free port, then the workers, and blocks until
// all are done. Any program that fails or dies ends the run with its name; none
// outlives the call. INTERNAL or NOT_FOUND.
absl::StatusOr<RunResult> Train(const RunOptions& options,
                                const Progress& progress);

}  // namespace penstock::digits

#endif  // PENSTOCK_EXAMPLES_DIGITS_TRAINING_H_
