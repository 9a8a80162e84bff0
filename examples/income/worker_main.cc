// income_worker: one worker of the training that the demo starts. Prints the
// lines of RunWorker() on standard output.

#include <iostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "examples/income/dataset.h"
#include "examples/income/flags.h"
#include "examples/income/training.h"

namespace penstock::income {
namespace {

absl::Status Run(const std::vector<std::string>& servers, unsigned rank,
                 const TrainingOptions& options) {
  absl::StatusOr<Dataset> dataset = ReadIncome(EmbeddedCsv());
  if (!dataset.ok()) return dataset.status();
  return RunWorker(servers, rank, options, dataset->train);
}

}  // namespace
}  // namespace penstock::income

int main(int argc, char** argv) {
  std::vector<std::string> servers;
  unsigned rank = 0;
  penstock::income::TrainingOptions options;
  CLI::App app("Income: one worker of a training");
  app.add_option("--servers", servers, "addresses, with commas")
      ->delimiter(',')
      ->required();
  app.add_option("--rank", rank, "0 is the chief");
  penstock::income::AddFlags(&options, &app);
  CLI11_PARSE(app, argc, argv);
  absl::Status status = penstock::income::Run(servers, rank, options);
  if (status.ok()) return 0;
  std::cerr << "income_worker: " << status << "\n";
  return 1;
}
