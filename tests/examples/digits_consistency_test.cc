// Tests that workers that wait less for each other reach the same accuracy.

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "examples/digits/training.h"

namespace penstock::digits {
namespace {

constexpr unsigned kSeeds = 5;

// The tolerated difference of two mean accuracies. 96 % of the 360 test digits
// are recognised. If errors were independent, one accuracy would have a
// standard deviation of 1 %, and the difference of two means over the seeds
// 0.65 %. This tolerance is twice that; measured differences were 0.3 %.
constexpr double kNoise = 0.013;

// The tolerated ratio of two mean training losses. The loss is more precise
// than the accuracy: its standard deviation over seeds is a tenth of its value,
// and 7 % for the difference of two means.
constexpr double kLossNoise = 0.25;

RunOptions OptionsOf(const std::string& staleness, unsigned seed) {
  RunOptions options;
  options.hidden = 64;
  options.steps = 600;
  options.seed = seed;
  options.staleness = staleness;
  // Divides the learning rate by the number of workers, because each push is a
  // separate step. A synchronous step is the mean of all workers.
  if (staleness != "0") options.learning_rate /= options.workers;
  return options;
}

struct Means {
  double accuracy = 0;
  double loss = 0;
};

absl::StatusOr<RunResult> Run(const RunOptions& options) {
  auto training = Training::Start(options);
  if (!training.ok()) return training.status();
  const absl::Status status =
      (*training)->RunTo(options.steps, [](unsigned, double) {});
  if (!status.ok()) return status;
  return (*training)->Finish();
}

void RunSeeds(const std::string& staleness, Means* means) {
  for (unsigned seed = 1; seed <= kSeeds; ++seed) {
    const auto result = Run(OptionsOf(staleness, seed));
    ASSERT_TRUE(result.ok()) << result.status();
    printf("staleness %s, seed %u: accuracy %.4f, loss %.5f\n",
           staleness.c_str(), seed, result->accuracy, result->final_loss);
    means->accuracy += result->accuracy / kSeeds;
    means->loss += result->final_loss / kSeeds;
  }
}

TEST(DigitsConsistencyTest, AllStalenessesLearnEquallyWell) {
  Means synchronous;
  ASSERT_NO_FATAL_FAILURE(RunSeeds("0", &synchronous));
  EXPECT_GT(synchronous.accuracy, 0.95);
  for (const char* staleness : {"2", "unlimited"}) {
    Means means;
    ASSERT_NO_FATAL_FAILURE(RunSeeds(staleness, &means));
    printf(
        "staleness %s: accuracy %.4f, and %.4f synchronous; loss %.5f, %.5f\n",
        staleness, means.accuracy, synchronous.accuracy, means.loss,
        synchronous.loss);
    EXPECT_NEAR(means.accuracy, synchronous.accuracy, kNoise);
    EXPECT_NEAR(means.loss / synchronous.loss, 1, kLossNoise);
  }
}

}  // namespace
}  // namespace penstock::digits
