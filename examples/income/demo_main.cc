// demo: trains a logistic regression by FTRL in several processes. See
// README.md.

#include <algorithm>
#include <cstdio>
#include <iostream>

#include "examples/income/dataset.h"
#include "examples/income/flags.h"
#include "examples/income/logistic.h"
#include "examples/income/training.h"

namespace penstock::income {
namespace {

// What a plain implementation reaches; see the test.
constexpr double kGoodAuc = 0.88;

absl::Status Run(const TrainingOptions& options) {
  absl::StatusOr<Dataset> dataset = ReadIncome(EmbeddedCsv());
  if (!dataset.ok()) return dataset.status();
  printf("%zu examples to train on, %zu held out\n", dataset->train.size(),
         dataset->test.size());
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
  if (auc < kGoodAuc) return absl::InternalError("AUC is below 0.88");
  return absl::OkStatus();
}

}  // namespace
}  // namespace penstock::income

int main(int argc, char** argv) {
  penstock::income::TrainingOptions options;
  CLI::App app("Income: FTRL on a sparse table, in several processes");
  app.add_option("--ps", options.servers, "parameter servers")
      ->check(CLI::Range(1u, 64u))
      ->capture_default_str();
  penstock::income::AddFlags(&options, &app);
  CLI11_PARSE(app, argc, argv);
  absl::Status status = penstock::income::Run(options);
  if (status.ok()) return 0;
  std::cerr << "demo: " << status << "\n";
  return 1;
}
