// Tests the income example: its arithmetic, and its training by the parameter
// server, in comparison with an independent implementation of the published
// algorithm.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <random>
#include <unordered_map>
#include <vector>

#include "examples/income/dataset.h"
#include "examples/income/logistic.h"
#include "examples/income/training.h"

namespace penstock::income {
namespace {

// A reference for FTRL, in doubles. Follows algorithm 1 of H. B. McMahan et
// al., "Ad Click Prediction: a View from the Trenches", KDD 2013. A step's
// gradient is that of `batch` examples, times `scale`.
class Reference {
 public:
  explicit Reference(const TrainingOptions& options) : options_(options) {}

  void Step(const std::vector<const Example*>& batch, double scale) {
    std::unordered_map<uint64_t, double> gradients;
    for (const Example* example : batch) {
      double sum = 0;
      for (uint64_t id : example->features) sum += Weight(id);
      const double p = 1 / (1 + std::exp(-sum));
      for (uint64_t id : example->features) {
        gradients[id] += scale * (p - example->label);
      }
    }
    for (const auto& [id, g] : gradients) {
      const double w = Weight(id);
      State& state = states_[id];
      const double sigma =
          (std::sqrt(state.n + g * g) - std::sqrt(state.n)) / options_.alpha;
      state.z += g - sigma * w;
      state.n += g * g;
    }
  }

  double Weight(uint64_t id) const {
    const auto found = states_.find(id);
    if (found == states_.end()) return 0;
    const State& state = found->second;
    if (std::abs(state.z) <= options_.lambda1) return 0;
    const double sign = state.z < 0 ? -1 : 1;
    return -(state.z - sign * options_.lambda1) /
           ((options_.beta + std::sqrt(state.n)) / options_.alpha +
            options_.lambda2);
  }

  double Predict(const Example& example) const {
    double sum = 0;
    for (uint64_t id : example.features) sum += Weight(id);
    return 1 / (1 + std::exp(-sum));
  }

 private:
  struct State {
    double z = 0;
    double n = 0;
  };
  const TrainingOptions options_;
  std::unordered_map<uint64_t, State> states_;
};

// Computes the AUC by its definition: over all pairs of labels 1 and 0.
template <typename Predicted>
double AucByPairs(const std::vector<Example>& examples,
                  const Predicted& predicted) {
  double won = 0;
  double pairs = 0;
  for (size_t i = 0; i < examples.size(); ++i) {
    if (examples[i].label == 0) continue;
    for (size_t j = 0; j < examples.size(); ++j) {
      if (examples[j].label == 1) continue;
      ++pairs;
      if (predicted[i] > predicted[j]) won += 1;
      if (predicted[i] == predicted[j]) won += 0.5;
    }
  }
  return won / pairs;
}

const Dataset& Income() {
  static const Dataset* dataset =
      new Dataset(ReadIncome(EmbeddedCsv()).value());
  return *dataset;
}

Reference TrainReference(const TrainingOptions& options, unsigned steps) {
  Reference reference(options);
  const std::vector<Example>& train = Income().train;
  const size_t size = size_t{options.batch} * options.workers;
  size_t at = 0;
  for (unsigned step = 0; step < steps; ++step) {
    std::vector<const Example*> batch;
    for (size_t i = 0; i < size; ++i) {
      batch.push_back(&train[at]);
      at = (at + 1) % train.size();
    }
    // Scales the step as the servers do, which use the mean of the workers'
    // gradients.
    reference.Step(batch, 1.0 / options.workers);
  }
  return reference;
}

TEST(IncomeTest, EachFourthExampleIsHeldOut) {
  const Dataset& income = Income();
  EXPECT_EQ(income.test.size(), 4071);
  EXPECT_EQ(income.train.size(), 12210);
  double ones = 0;
  for (const Example& example : income.train) ones += example.label;
  EXPECT_NEAR(ones / 12210, 0.236, 0.005);  // as adult.names says of the whole
}

TEST(IncomeTest, FeaturesAreColumnsAndPairsOfThem) {
  for (const Example& example : Income().train) {
    ASSERT_EQ(example.features.size(), 1 + 12 + 12 * 11 / 2);
  }
}

TEST(IncomeTest, LinesThatAreNoneAreNamed) {
  const absl::Status status =
      ReadIncome("|comment\n25, Private, >50K.\n").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("line 2"), std::string::npos) << status;
}

TEST(IncomeTest, AucIsThatOfAllPairs) {
  constexpr unsigned kSeeds = 50;
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    std::mt19937 random(seed);
    std::vector<Example> examples(20);
    std::vector<float> predicted;
    for (Example& example : examples) {
      example.label = static_cast<float>(random() % 2);
      predicted.push_back(static_cast<float>(random() % 5) / 4);  // with ties
    }
    examples[0].label = 0;
    examples[1].label = 1;
    EXPECT_NEAR(Auc(examples, predicted), AucByPairs(examples, predicted),
                1e-12)
        << "seed " << seed;
  }
}

// Expects the weights of the reference, except for rounding. Where |z| is close
// to lambda1, rounding decides if a weight is 0, and the weight is close to 0.
void ExpectReference(const TrainingOptions& options) {
  const Dataset& income = Income();
  const auto weights = Train(options, income, [](unsigned, double) {});
  ASSERT_TRUE(weights.ok()) << weights.status();
  const Reference reference = TrainReference(options, options.steps);
  size_t nonzero = 0;
  size_t expected = 0;
  for (size_t i = 0; i < weights->ids.size(); ++i) {
    const double weight = reference.Weight(weights->ids[i]);
    ASSERT_NEAR(weights->values[i], weight, 2e-5) << "id " << weights->ids[i];
    nonzero += weights->values[i] != 0 ? 1 : 0;
    expected += weight != 0 ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(nonzero), static_cast<double>(expected), 3);
  EXPECT_GT(nonzero, 100);
  EXPECT_LT(nonzero, weights->ids.size() / 2);

  const auto predicted = Predict(income.test, weights->test);
  std::vector<double> by_reference;
  double loss = 0;
  for (const Example& example : income.test) {
    const double p = reference.Predict(example);
    by_reference.push_back(p);
    loss -= std::log(example.label == 1 ? p : 1 - p);
  }
  loss /= static_cast<double>(income.test.size());
  const double auc = AucByPairs(income.test, by_reference);
  EXPECT_NEAR(Auc(income.test, predicted), auc, 1e-5);
  EXPECT_NEAR(LogLoss(income.test, predicted), loss, 1e-5);
  EXPECT_GT(auc, 0.87);
  printf(
      "AUC %.6f, by the reference %.6f; log loss %.6f, %.6f; %zu of %zu "
      "weights are not 0, %zu\n",
      Auc(income.test, predicted), auc, LogLoss(income.test, predicted), loss,
      nonzero, weights->ids.size(), expected);
}

TEST(IncomeTest, OneWorkerIsThePublishedAlgorithm) {
  TrainingOptions options;
  options.workers = 1;
  options.steps = 400;
  ExpectReference(options);
}

TEST(IncomeTest, SynchronousWorkersTakeStepsByTheirMean) {
  TrainingOptions options;
  options.workers = 2;
  options.steps = 200;
  options.lambda2 = 0.5;
  ExpectReference(options);
}

TEST(IncomeTest, AsynchronousWorkersLearnAsWell) {
  TrainingOptions options;
  options.staleness = "unlimited";
  options.steps = 200;
  const auto weights = Train(options, Income(), [](unsigned, double) {});
  ASSERT_TRUE(weights.ok()) << weights.status();
  const auto predicted = Predict(Income().test, weights->test);
  EXPECT_GT(Auc(Income().test, predicted), 0.87);
}

// Tests a short training whose workers start at different times. A worker may
// leave before the other worker has come, and the servers must not wait for
// both.
TEST(IncomeTest, AShortTrainingEndsWhoeverComesLate) {
  TrainingOptions options;
  options.steps = 1;
  for (int run = 0; run < 8; ++run) {
    const auto weights = Train(options, Income(), [](unsigned, double) {});
    ASSERT_TRUE(weights.ok()) << "run " << run << ": " << weights.status();
  }
}

TEST(IncomeTest, AStalenessThatIsNoneIsRefused) {
  TrainingOptions options;
  options.staleness = "-1";
  options.workers = 1;
  EXPECT_FALSE(Train(options, Income(), [](unsigned, double) {}).ok());
}

}  // namespace
}  // namespace penstock::income
