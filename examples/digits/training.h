// Runs one training in processes of its own.

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
  double learning_rate = 0.4;   // README.md tells how it was chosen
  std::string staleness = "0";  // as digits_worker takes it
  unsigned seed = 1;
  bool stock = false;  // stock gRPC over TCP instead of Penstock
};

// How long the steps of a round took, in microseconds: medians over all workers
// and steps but the first ones. Without the wait at the barrier, which has a
// field of its own.
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

// Returns the description that all connections have, or else each with its
// worker and server. Returns "unknown" for none.
std::string Summarize(const std::vector<RunResult::Path>& paths);

// Called with the steps that the chief has done and its loss.
using Progress = std::function<void(unsigned steps_done, double loss)>;

// Returns the middle value, or the mean of the two middle ones; 0 for none.
double Median(std::vector<double> values);

// A training run. If a program fails or dies, the run ends with INTERNAL, which
// names it. No program outlives the object. Not thread-safe.
class Training {
 public:
  // Starts the servers, each on a free port, then the workers. Blocks until all
  // workers wait at the gate before the first step.
  static absl::StatusOr<std::unique_ptr<Training>> Start(
      const RunOptions& options);

  // Runs one round: lets the workers through the gate, and blocks until all
  // wait before `step`. Between rounds every process only waits and sends
  // heartbeats.
  absl::Status RunTo(unsigned step, const Progress& progress);

  // Ends all processes in good order. Call it after the round to the last step.
  absl::StatusOr<RunResult> Finish();

 private:
  class Ledger;

  explicit Training(const RunOptions& options) : options_(options) {}
  absl::Status StartServers(std::vector<std::string>* addresses);
  absl::Status StartWorkers(const std::vector<std::string>& addresses);
  // Writes `line` to all workers.
  absl::Status Tell(const std::string& line);
  // Reads all workers' output side by side until each is at the gate or, with
  // `to_end`, has ended well. Watches the servers' output too: its end means
  // that the server has died.
  absl::Status Follow(bool to_end, Ledger* ledger);

  const RunOptions options_;
  std::vector<examples::Process> servers_;
  std::vector<examples::Process> workers_;
  std::vector<StepTimes> rounds_;
};

}  // namespace penstock::digits

#endif  // PENSTOCK_EXAMPLES_DIGITS_TRAINING_H_
