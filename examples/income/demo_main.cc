// demo: trains a logistic regression by FTRL in several processes. See
// README.md.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iostream>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "examples/income/dataset.h"
#include "examples/income/flags.h"
#include "examples/income/logistic.h"
#include "examples/income/training.h"

namespace penstock::income {
namespace {

// The minimal AUC of a good training. A plain implementation reaches this AUC,
// too; see the test.
constexpr double kGoodAuc = 0.88;

absl::Status Run(const TrainingOptions& options) {
  absl::StatusOr<Dataset> dataset = ReadIncome(EmbeddedCsv());
  if (!dataset.ok()) return dataset.status();
  printf("%zu examples to train on, %zu held out\n", dataset->train.size(),
         dataset->test.size());
  printf("parameter servers: %u, workers: %u, staleness: %s\n", options.servers,
         options.workers, options.staleness.c_str());
  fflush(stdout);
  auto weights = Train(options, *dataset, [](unsigned step, double loss) {
    if (step % 100 == 0) printf("step %4u: loss %.4f\n", step, loss);
    fflush(stdout);
  });
  if (!weights.ok()) return weights.status();
  const auto predicted = Predict(dataset->test, weights->test);
  const double auc = Auc(dataset->test, predicted);
  const auto zeros =
      std::count(weights->values.begin(), weights->values.end(), 0.0F);
  printf("held out: AUC %.4f, log loss %.4f\n", auc,
         LogLoss(dataset->test, predicted));
  printf("weights that are not 0: %zu of %zu\n",
         weights->values.size() - static_cast<size_t>(zeros),
         weights->values.size());
  if (auc < kGoodAuc)
    return absl::InternalError(absl::StrCat("AUC is below ", kGoodAuc));
  return absl::OkStatus();
}

}  // namespace
}  // namespace penstock::income

int main(int argc, char** argv) {
  // Silence the log, whose lines for each connection do not concern the
  // training.
  setenv("PENSTOCK_LOG", "warning", /*overwrite=*/0);
  penstock::income::TrainingOptions options;
  CLI::App app(
      "Logistic regression by FTRL on a sparse table, in several processes");
  penstock::examples::AddServers(&options.servers, &app);
  penstock::income::AddFlags(&options, &app);
  CLI11_PARSE(app, argc, argv);
  absl::Status status = penstock::income::Run(options);
  if (status.ok()) return 0;
  std::cerr << "demo: " << status << "\n";
  return 1;
}
