// Runs one training in separate processes.

#ifndef PENSTOCK_EXAMPLES_DIGITS_TRAINING_H_
#define PENSTOCK_EXAMPLES_DIGITS_TRAINING_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "examples/common/process.h"

namespace penstock::digits {

struct RunOptions {
  unsigned servers = 2;
  unsigned workers = 2;
  unsigned steps = 1500;
  unsigned batch = 32;
  int hidden = 512;
  double learning_rate = 0.4;   // README.md explains the choice
  std::string staleness = "0";  // in the notation of digits_worker
  unsigned seed = 1;
  bool stock = false;  // stock gRPC over TCP instead of Penstock
};

// Durations of a round's steps, in microseconds: medians over all workers and
// all steps except the first ones. The wait at the barrier is separate.
struct StepTimes {
  double pull_us = 0;
  double push_us = 0;
  double wait_us = 0;
};

struct RunResult {
  // The path of the connection between a worker and a server.
  struct Path {
    unsigned worker;
    unsigned server;
    std::string description;
  };
  std::vector<Path> paths;  // by worker, then by server
  double accuracy = 0;      // on the test digits, 0 to 1
  double final_loss = 0;    // on the training digits, nats
  StepTimes times;          // medians over the rounds
};

// Returns a text for the paths. If all connections have the same description,
// returns that. Otherwise returns each with its worker and server. Returns
// "unknown" for an empty list.
std::string Summarize(const std::vector<RunResult::Path>& paths);

// A function that receives the chief's number of completed steps, and its loss.
using Progress = std::function<void(unsigned steps_done, double loss)>;

// Returns the median, or 0 for an empty list.
double Median(std::vector<double> values);

// Runs one training. If a program fails or dies, the training ends with
// INTERNAL and the program's name. All programs end with the object. Not
// thread-safe.
class Training {
 public:
  // Starts the servers, each on a free port, and then the workers. Blocks until
  // all workers wait at the gate before the first step.
  static absl::StatusOr<std::unique_ptr<Training>> Start(
      const RunOptions& options);

  // Runs one round, up to the step `step`. Opens the gate, and blocks until all
  // workers wait at the gate before `step`. Between rounds, processes only wait
  // and send heartbeats.
  absl::Status RunTo(unsigned step, const Progress& progress);

  // Ends all processes cleanly. Call it after the round to the last step.
  absl::StatusOr<RunResult> Finish();

 private:
  class Ledger;

  explicit Training(const RunOptions& options) : options_(options) {}
  absl::Status StartServers(std::vector<std::string>* addresses);
  absl::Status StartWorkers(const std::vector<std::string>& addresses);
  // Writes `line` to the standard input of all workers.
  absl::Status Tell(const std::string& line);
  // Reads all workers' output until each worker is at the gate or, if `to_end`,
  // has ended successfully. Also watches the servers' output, whose end means
  // that a server has died.
  absl::Status Follow(bool to_end, Ledger* ledger);

  const RunOptions options_;
  std::vector<examples::Process> servers_;
  std::vector<examples::Process> workers_;
  std::vector<StepTimes> rounds_;
};

}  // namespace penstock::digits

#endif  // PENSTOCK_EXAMPLES_DIGITS_TRAINING_H_
