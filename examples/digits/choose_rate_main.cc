// choose_rate: trains in this process with several learning rates, and prints
// the accuracy of each on the validation digits. Does not use the test digits.
// README.md shows the results.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "examples/digits/dataset.h"
#include "examples/digits/model.h"
#include "ps/optim/optimizer.h"

namespace penstock::digits {
namespace {

struct Flags {
  std::vector<double> rates = {0.05, 0.1, 0.2, 0.4, 0.8};
  // The numbers of steps after which the accuracy is printed: those of the demo
  // with --quick and without.
  std::vector<unsigned> steps = {300, 1500};
  size_t batch = 64;  // of all workers together
  int hidden = 512;
  unsigned seeds = 3;
};

absl::Status Step(const Images& batch, const ps::optim::Optimizer& optimizer,
                  uint64_t step, tensor::Bundle* values) {
  absl::StatusOr<Gradients> gradients = ComputeGradients(*values, batch);
  if (!gradients.ok()) return gradients.status();
  for (size_t at = 0; at < values->tensors.size(); ++at) {
    auto gradient = gradients->bundle.tensors[at].tensor.flat<float>();
    auto value = values->tensors[at].tensor.mutable_flat<float>();
    if (!gradient.ok()) return gradient.status();
    if (!value.ok()) return value.status();
    optimizer.Apply(optimizer.ScalarsOf(step), gradient->data(), value->data(),
                    value->data(), nullptr, value->size());
  }
  return absl::OkStatus();
}

// Trains with one rate and one seed, and prints a line after each step count of
// `flags.steps`.
absl::Status Try(const Flags& flags, double rate, unsigned seed) {
  absl::StatusOr<Dataset> digits = LoadDigits(EmbeddedCsv(), seed);
  if (!digits.ok()) return digits.status();
  ps::optim::OptimizerConfig config;
  config.schedule.learning_rate = rate;
  auto optimizer = ps::optim::Optimizer::Create(config);
  if (!optimizer.ok()) return optimizer.status();
  absl::StatusOr<tensor::Bundle> values = InitialValues(flags.hidden, seed);
  if (!values.ok()) return values.status();
  unsigned done = 0;
  for (unsigned until : flags.steps) {
    for (; done < until; ++done) {
      absl::Status status =
          Step(BatchOf(digits->train, done, 0, 1, flags.batch), **optimizer,
               done + 1, &*values);
      if (!status.ok()) return status;
    }
    auto accuracy = Accuracy(*values, digits->validation);
    if (!accuracy.ok()) return accuracy.status();
    auto loss = ComputeGradients(*values, digits->validation);
    if (!loss.ok()) return loss.status();
    printf("%6g %5u %5u %9.2f %9.4f\n", rate, seed, done, *accuracy * 100,
           loss->loss);
    fflush(stdout);
  }
  return absl::OkStatus();
}

absl::Status Run(const Flags& flags) {
  printf("%6s %5s %5s %9s %9s\n", "rate", "seed", "steps", "accuracy", "loss");
  for (double rate : flags.rates) {
    for (unsigned seed = 1; seed <= flags.seeds; ++seed) {
      absl::Status status = Try(flags, rate, seed);
      if (!status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace penstock::digits

int main(int argc, char** argv) {
  penstock::digits::Flags flags;
  CLI::App app("Tries learning rates on the validation digits");
  app.add_option("--rates", flags.rates)->delimiter(',');
  app.add_option("--steps", flags.steps, "ascending")->delimiter(',');
  app.add_option("--batch", flags.batch)->check(CLI::PositiveNumber);
  app.add_option("--hidden", flags.hidden)->check(CLI::Range(1, 32768));
  app.add_option("--seeds", flags.seeds)->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  absl::Status status = penstock::digits::Run(flags);
  if (status.ok()) return 0;
  std::cerr << "choose_rate: " << status.ToString() << "\n";
  return 1;
}
