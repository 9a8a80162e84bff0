// demo: trains digits in several processes, alternately over Penstock and over
// stock gRPC, and compares the two. See README.md.

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "examples/digits/training.h"

namespace penstock::digits {
namespace {

constexpr double kGoodAccuracy = 0.95;
// The tolerated difference between two accuracies if the order of pushes is
// random. About two and a half standard errors on 360 test digits.
constexpr double kNoise = 0.03;
constexpr char kBoundedStaleness[] = "2";

absl::Status Named(const char* name, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(),
                      absl::StrCat(name, ": ", status.message()));
}

// Draws a progress bar if standard output is a terminal.
void ShowProgress(const char* name, unsigned steps, unsigned done) {
  constexpr unsigned kWidth = 30;
  static const bool kTerminal = isatty(STDOUT_FILENO) != 0;
  if (!kTerminal) return;
  std::string bar(kWidth * done / steps, '#');
  bar.resize(kWidth, '.');
  printf("\r  %-8s [%s] %u/%u", name, bar.c_str(), done, steps);
  fflush(stdout);
}

// One of the two clusters that train in turn.
struct Side {
  const char* name;
  std::unique_ptr<Training> training;
  double loss = 0;  // of the chief's last step
};

absl::Status PlayRound(Side* side, unsigned until, unsigned steps) {
  absl::Status status =
      side->training->RunTo(until, [&](unsigned done, double loss) {
        side->loss = loss;
        ShowProgress(side->name, steps, done);
      });
  return Named(side->name, status);
}

// Trains on both clusters in turn. One cluster trains while the other waits at
// its gate. A disturbance of the machine that lasts longer than a round
// therefore affects both alike.
absl::Status TakeTurns(const RunOptions& options, unsigned rounds, Side* ours,
                       Side* stock) {
  for (unsigned round = 1; round <= rounds; ++round) {
    auto until =
        static_cast<unsigned>(uint64_t{options.steps} * round / rounds);
    absl::Status status = PlayRound(ours, until, options.steps);
    if (status.ok()) status = PlayRound(stock, until, options.steps);
    if (!status.ok()) return status;
    printf("%sround %u of %u: step %u, loss %.4f and %.4f\n",
           isatty(STDOUT_FILENO) != 0 ? "\r\033[K" : "", round, rounds, until,
           ours->loss, stock->loss);
    fflush(stdout);
  }
  return absl::OkStatus();
}

void PrintTable(const RunResult& ours, const RunResult& stock) {
  const StepTimes& a = ours.times;
  const StepTimes& b = stock.times;
  printf(
      "\nMilliseconds of a worker's step, without the wait at the barrier;\n"
      "the median of each round, and of those the median:\n");
  printf("%-12s %9s %9s   %s\n", "", "pull", "push", "path");
  printf("%-12s %9.3f %9.3f   %s\n", "Penstock", a.pull_us / 1000,
         a.push_us / 1000, Summarize(ours.paths).c_str());
  printf("%-12s %9.3f %9.3f   %s\n", "stock", b.pull_us / 1000,
         b.push_us / 1000, Summarize(stock.paths).c_str());
  printf("%-12s %9.2f %9.2f\n", "stock / ours", b.pull_us / a.pull_us,
         b.push_us / a.push_us);
}

absl::StatusOr<RunResult> Finish(Side* side, double least_accuracy) {
  absl::StatusOr<RunResult> result = side->training->Finish();
  if (!result.ok()) return Named(side->name, result.status());
  printf("%-8s: accuracy %.2f %% on held-out digits, loss %.4f\n", side->name,
         result->accuracy * 100, result->final_loss);
  if (result->accuracy < least_accuracy) {
    return absl::InternalError(absl::StrCat(side->name, ": accuracy is below ",
                                            least_accuracy * 100, " %"));
  }
  return result;
}

absl::StatusOr<Side> Start(const char* name, RunOptions options, bool stock) {
  options.stock = stock;
  auto training = Training::Start(options);
  if (!training.ok()) return Named(name, training.status());
  return Side{name, *std::move(training)};
}

// Trains once more, with workers that wait less for each other. Each push is
// then a separate step, while a synchronous step applies the mean of all
// workers. The learning rate is therefore divided by the number of workers.
absl::Status TrainLoosely(RunOptions options, const char* name,
                          const char* staleness) {
  options.staleness = staleness;
  options.learning_rate /= options.workers;
  auto side = Start(name, options, /*stock=*/false);
  if (!side.ok()) return side.status();
  absl::Status status = PlayRound(&*side, options.steps, options.steps);
  if (!status.ok()) return status;
  if (isatty(STDOUT_FILENO) != 0) printf("\r\033[K");
  return Finish(&*side, kGoodAccuracy - kNoise).status();
}

absl::Status Run(const RunOptions& options, unsigned rounds) {
  absl::Time start = absl::Now();
  rounds = std::min(rounds, options.steps);
  printf(
      "Penstock (shm, tcp) and stock gRPC over TCP in turns, each with "
      "%u servers, %u workers, %u steps\n",
      options.servers, options.workers, options.steps);
  fflush(stdout);
  auto ours = Start("Penstock", options, /*stock=*/false);
  if (!ours.ok()) return ours.status();
  auto stock = Start("stock", options, /*stock=*/true);
  if (!stock.ok()) return stock.status();
  absl::Status status = TakeTurns(options, rounds, &*ours, &*stock);
  if (!status.ok()) return status;
  auto our_result = Finish(&*ours, kGoodAccuracy);
  if (!our_result.ok()) return our_result.status();
  auto stock_result = Finish(&*stock, kGoodAccuracy);
  if (!stock_result.ok()) return stock_result.status();
  PrintTable(*our_result, *stock_result);
  printf(
      "\nThe same over Penstock, with workers that are up to %s steps ahead "
      "of the slowest,\nand with such that never wait:\n",
      kBoundedStaleness);
  status = TrainLoosely(options, "bounded", kBoundedStaleness);
  if (status.ok()) status = TrainLoosely(options, "async", "unlimited");
  if (!status.ok()) return status;
  printf("%.1f s in all\n", absl::ToDoubleSeconds(absl::Now() - start));
  // Requires losses that are equal in every bit, for any transport: seeds are
  // equal, and gradients are averaged in rank order.
  if (our_result->final_loss != stock_result->final_loss) {
    return absl::InternalError("the two runs ended with different losses");
  }
  return absl::OkStatus();
}

// Returns the option --steps.
CLI::Option* Declare(CLI::App* app, RunOptions* options) {
  CLI::Option* const steps =
      app->add_option("--steps", options->steps, "of each worker and training")
          ->check(CLI::Range(1U, 1000000U))
          ->capture_default_str();
  app->add_option("--hidden", options->hidden,
                  "width of the hidden layers; wider moves more bytes")
      ->check(CLI::Range(1, 32768))
      ->capture_default_str();
  app->add_option("--batch", options->batch, "images a step and worker")
      ->check(CLI::Range(1U, 1U << 14))
      ->capture_default_str();
  app->add_option("--workers", options->workers, "processes that train")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app->add_option("--servers", options->servers,
                  "parameter servers, a process each")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app->add_option("--learning-rate", options->learning_rate, "of SGD")
      ->check(CLI::Range(1e-6, 1e3))
      ->capture_default_str();
  app->add_option("--seed", options->seed, "of first values and batches")
      ->capture_default_str();
  return steps;
}

}  // namespace
}  // namespace penstock::digits

int main(int argc, char** argv) {
  // Silence the log, which has a line for each connection. The final table
  // repeats these lines.
  setenv("PENSTOCK_LOG", "warning", /*overwrite=*/0);
  penstock::digits::RunOptions options;
  unsigned rounds = 4;
  bool quick = false;
  CLI::App app("Trains handwritten digits over Penstock and over stock gRPC");
  const CLI::Option* const steps = penstock::digits::Declare(&app, &options);
  app.add_option("--rounds", rounds, "turns of each of the two")
      ->check(CLI::Range(1U, 1000U))
      ->capture_default_str();
  app.add_flag("--quick", quick, "few steps: a few seconds in all");
  CLI11_PARSE(app, argc, argv);
  if (quick && steps->count() == 0) options.steps = 300;
  absl::Status status = penstock::digits::Run(options, rounds);
  if (status.ok()) return 0;
  std::cerr << "demo: " << status.ToString() << "\n";
  return 1;
}
