// demo: trains digits in several processes, once over Penstock and once over
// stock gRPC, and compares. See README.md.

#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <string>

#include "absl/strings/str_cat.h"
#include "examples/digits/training.h"

namespace penstock::digits {
namespace {

constexpr double kGoodAccuracy = 0.95;

// A bar where somebody watches, else a line every quarter.
void ShowProgress(unsigned steps, unsigned done, double loss) {
  constexpr unsigned kWidth = 30;
  static const bool kTerminal = isatty(STDOUT_FILENO) != 0;
  if (kTerminal) {
    std::string bar(kWidth * done / steps, '#');
    bar.resize(kWidth, '.');
    printf("\r  [%s] step %u/%u  loss %.4f%s", bar.c_str(), done, steps, loss,
           done == steps ? "\n" : "");
    fflush(stdout);
  } else if (done * 4 / steps != (done - 1) * 4 / steps) {
    printf("  step %u/%u  loss %.4f\n", done, steps, loss);
    fflush(stdout);
  }
}

absl::StatusOr<RunResult> TrainAloud(const std::string& title,
                                     const RunOptions& options) {
  printf("%s: %u servers, %u workers, %u steps\n", title.c_str(),
         options.servers, options.workers, options.steps);
  auto result = Train(options, [&](unsigned done, double loss) {
    ShowProgress(options.steps, done, loss);
  });
  if (!result.ok()) return result;
  printf("  accuracy %.2f %% on held-out digits, loss %.4f, %.1f s\n\n",
         result->accuracy * 100, result->final_loss, result->seconds);
  if (result->accuracy < kGoodAccuracy) {
    return absl::InternalError(
        absl::StrCat(title, ": accuracy is below ", kGoodAccuracy * 100, " %"));
  }
  return result;
}

void PrintRow(const char* name, const RunResult& r) {
  printf("%-9s %9.3f %9.3f %9.3f   %s\n", name, r.pull_us / 1000,
         r.push_us / 1000, r.wait_us / 1000, r.path.c_str());
}

void PrintTable(const RunResult& ours, const RunResult& stock) {
  printf("Median of a worker's step, in milliseconds:\n");
  printf("%-9s %9s %9s %9s   %s\n", "", "pull", "push", "barrier", "path");
  PrintRow("Penstock", ours);
  PrintRow("stock", stock);
  printf("Pull and push take %.2f times as long over stock gRPC.\n",
         (stock.pull_us + stock.push_us) / (ours.pull_us + ours.push_us));
}

absl::Status Run(RunOptions options) {
  options.stock = false;
  auto ours = TrainAloud("Penstock (shm, tcp)", options);
  if (!ours.ok()) return ours.status();
  options.stock = true;
  auto stock = TrainAloud("Stock gRPC over TCP", options);
  if (!stock.ok()) return stock.status();
  PrintTable(*ours, *stock);
  // The same seeds, and gradients averaged in the order of the ranks: not one
  // bit may depend on what carried them.
  if (ours->final_loss != stock->final_loss) {
    return absl::InternalError("the two runs ended with different losses");
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace penstock::digits

int main(int argc, char** argv) {
  penstock::digits::RunOptions options;
  bool quick = false;
  CLI::App app("Trains handwritten digits over Penstock and over stock gRPC");
  auto* steps = app.add_option("--steps", options.steps)
                    ->check(CLI::PositiveNumber)
                    ->capture_default_str();
  app.add_option("--hidden", options.hidden,
                 "width of the hidden layers; wider moves more bytes")
      ->check(CLI::Range(1, 32768))
      ->capture_default_str();
  app.add_option("--batch", options.batch, "images a step and worker")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--workers", options.workers)
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--servers", options.servers)
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--learning-rate", options.learning_rate)
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--seed", options.seed)->capture_default_str();
  app.add_flag("--quick", quick, "few steps: a few seconds in all");
  CLI11_PARSE(app, argc, argv);
  if (quick && steps->count() == 0) options.steps = 300;
  absl::Status status = penstock::digits::Run(options);
  if (status.ok()) return 0;
  std::cerr << "demo: " << status.ToString() << "\n";
  return 1;
}
