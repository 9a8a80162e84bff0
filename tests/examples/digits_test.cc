#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "examples/digits/dataset.h"
#include "examples/digits/model.h"

namespace penstock::digits {
namespace {

TEST(DatasetTest, EmbeddedDigitsAreWhole) {
  auto digits = LoadDigits(EmbeddedCsv(), 1);
  ASSERT_TRUE(digits.ok()) << digits.status();
  EXPECT_EQ(digits->train.labels.size(), 1078u);
  EXPECT_EQ(digits->validation.labels.size(), 359u);
  EXPECT_EQ(digits->test.labels.size(), 360u);
  EXPECT_EQ(digits->train.pixels.maxCoeff(), 1.0F);
  std::set<int> labels(digits->test.labels.begin(), digits->test.labels.end());
  EXPECT_EQ(labels.size(), 10u);
  EXPECT_EQ(LoadDigits(EmbeddedCsv(), 1)->test.labels, digits->test.labels);
}

TEST(DatasetTest, SeedOrdersTheTrainingDigitsAndLeavesTheOthers) {
  auto one = LoadDigits(EmbeddedCsv(), 1);
  auto two = LoadDigits(EmbeddedCsv(), 2);
  EXPECT_NE(one->train.labels, two->train.labels);
  EXPECT_NEAR(one->train.pixels.sum(), two->train.pixels.sum(), 1);
  EXPECT_EQ(one->validation.pixels, two->validation.pixels);
  EXPECT_EQ(one->test.pixels, two->test.pixels);
}

// Tests the order of the digits. tests/examples/tensorflow/demo_test.py has the
// same expectation in Python.
TEST(DatasetTest, HeldOutDigitsAreTheSameInAllExamples) {
  auto digits = LoadDigits(EmbeddedCsv(), 1);
  std::vector<int> first(digits->test.labels.begin(),
                         digits->test.labels.begin() + 12);
  EXPECT_EQ(first, std::vector<int>({2, 5, 1, 5, 2, 4, 7, 1, 3, 7, 3, 4}));
  EXPECT_EQ(digits->test.pixels.sum() * 16, 111858);
}

TEST(DatasetTest, BadLineIsNamed) {
  std::string csv(EmbeddedCsv());
  csv += "1,2,3\n";
  auto digits = LoadDigits(csv, 1);
  ASSERT_FALSE(digits.ok());
  EXPECT_NE(digits.status().message().find("1798"), absl::string_view::npos);
}

TEST(DatasetTest, WorkersBatchesTogetherWalkThroughTheSet) {
  auto digits = LoadDigits(EmbeddedCsv(), 1);
  Images first = BatchOf(digits->train, 0, 0, 2, 4);
  Images second = BatchOf(digits->train, 0, 1, 2, 4);
  Images both = BatchOf(digits->train, 0, 0, 1, 8);
  first.labels.insert(first.labels.end(), second.labels.begin(),
                      second.labels.end());
  EXPECT_EQ(first.labels, both.labels);
}

// Tests gradients against central differences, for one element of each
// variable.
TEST(ModelTest, GradientsAreTheSlopesOfTheLoss) {
  // The step of the difference quotient. The step is so small that no relu
  // changes its state between the two points.
  constexpr float kStep = 1e-3F;
  auto digits = LoadDigits(EmbeddedCsv(), 1);
  Images batch = BatchOf(digits->train, 0, 0, 1, 16);
  tensor::Bundle values = *InitialValues(8, 1);
  auto gradients = ComputeGradients(values, batch);
  ASSERT_TRUE(gradients.ok());
  for (size_t at = 0; at < values.tensors.size(); ++at) {
    size_t element = values.tensors[at].tensor.num_elements() / 2;
    float losses[2];
    for (int side = 0; side < 2; ++side) {
      tensor::Bundle moved = values;
      (*moved.tensors[at].tensor.mutable_flat<float>())[element] +=
          side == 0 ? -kStep : kStep;
      losses[side] = ComputeGradients(moved, batch)->loss;
    }
    float slope = (losses[1] - losses[0]) / (2 * kStep);
    float gradient =
        (*gradients->bundle.tensors[at].tensor.flat<float>())[element];
    EXPECT_NEAR(gradient, slope, 2e-3F) << values.tensors[at].name;
  }
}

TEST(ModelTest, WrongVariablesAreRefused) {
  auto digits = LoadDigits(EmbeddedCsv(), 1);
  tensor::Bundle values = *InitialValues(8, 1);
  values.tensors[2].tensor = *tensor::Tensor::Of<float>({1}, {1});
  EXPECT_FALSE(Accuracy(values, digits->test).ok());
  values.tensors.pop_back();
  EXPECT_FALSE(Accuracy(values, digits->test).ok());
}

}  // namespace
}  // namespace penstock::digits
