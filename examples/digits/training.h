// One training run in processes of its own, watched from outside.

#ifndef PENSTOCK_EXAMPLES_DIGITS_TRAINING_H_
#define PENSTOCK_EXAMPLES_DIGITS_TRAINING_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "examples/digits/process.h"

namespace penstock::digits {

struct RunOptions {
  unsigned servers = 2;
  unsigned workers = 2;
  unsigned steps = 1500;
  unsigned batch = 32;
  int hidden = 512;
  double learning_rate = 0.4;  // README.md says how it was chosen
  unsigned seed = 1;
  bool stock = false;  // stock gRPC over TCP instead of Penstock
};

// What one round's steps took: medians over all workers and steps, without the
// first ones; microseconds, the wait at the barrier apart.
struct StepTimes {
  double pull_us = 0;
  double push_us = 0;
  double wait_us = 0;
};

struct RunResult {
  // What carried the connection of each worker to each server.
  struct Path {
    unsigned worker;
    unsigned server;
    std::string description;
  };
  std::vector<Path> paths;  // by worker, then by server
  double accuracy = 0;      // on the held-out digits, 0 to 1
  double final_loss = 0;    // on the training digits, nats
  StepTimes times;          // medians over the rounds
};

// The one description where all connections agree, else each with its worker
// and server; "unknown" for none.
std::string Summarize(const std::vector<RunResult::Path>& paths);

// Called with the steps that the chief has done and its loss.
using Progress = std::function<void(unsigned steps_done, double loss)>;

// The middle value, or the mean of the two middle ones; 0 for none.
double Median(std::vector<double> values);

// Any program that fails or dies ends the run with its name, as INTERNAL; none
// outlives the object. Not thread-safe.
class Training {
 public:
  // Starts the servers, each on a free port, then the workers, and blocks
  // until all stand at the gate before the first step.
  static absl::StatusOr<std::unique_ptr<Training>> Start(
      const RunOptions& options);

  // One round: lets the workers through and blocks until all wait before
  // `step`. Between rounds every process only waits, but for heartbeats.
  absl::Status RunTo(unsigned step, const Progress& progress);

  // After the round to the last step: the end of all processes, in good order.
  absl::StatusOr<RunResult> Finish();

 private:
  class Ledger;

  explicit Training(const RunOptions& options) : options_(options) {}
  absl::Status StartServers(std::vector<std::string>* addresses);
  absl::Status StartWorkers(const std::vector<std::string>& addresses);
  // Tells all workers `line`.
  absl::Status Tell(const std::string& line);
  // Reads all workers side by side until each is at the gate or, `to_end`, has
  // ended well. The servers' output is watched too: its end is their death.
  absl::Status Follow(bool to_end, Ledger* ledger);

  const RunOptions options_;
  std::vector<Process> servers_;
  std::vector<Process> workers_;
  std::vector<StepTimes> rounds_;
};

}  // namespace penstock::digits

#endif  // PENSTOCK_EXAMPLES_DIGITS_TRAINING_H_
