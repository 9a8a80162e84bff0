#include "ps/optim/gradient.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "tests/ps/optim/random_values.h"

namespace penstock::ps::optim {
namespace {

using tensor::DType;

constexpr size_t kMany = 200'000;  // several tasks

GradientView ViewOf(const std::vector<float>& values) {
  return {DType::kF32, values.data(), values.size()};
}

MutableGradientView ViewOf(std::vector<float>* values) {
  return {DType::kF32, values->data(), values->size()};
}

TEST(CheckGradientTest, TheFirstBadElementIsNamed) {
  const Workers workers;
  std::mt19937_64 random(NewSeed());
  for (float bad : {HUGE_VALF, -HUGE_VALF, std::nanf(""), 2e18F}) {
    std::vector<float> values(kMany, 1e18F);
    EXPECT_TRUE(CheckGradient(ViewOf(values), DType::kF32, workers).ok());
    const size_t at = random() % (kMany - 1);
    values[at] = bad;
    values.back() = HUGE_VALF;
    const absl::Status status =
        CheckGradient(ViewOf(values), DType::kF32, workers);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    const std::string begin = "element " + std::to_string(at) + " is ";
    EXPECT_EQ(status.message().substr(0, begin.size()), begin);
    EXPECT_EQ(CheckGradient(ViewOf(values), DType::kF64, workers).ok(), false);
  }
}

TEST(CheckGradientTest, LimitsAreThoseOfTheComputation) {
  const Workers workers(1);
  const double large[] = {1e100};
  const GradientView view = {DType::kF64, large, 1};
  EXPECT_TRUE(CheckGradient(view, DType::kF64, workers).ok());
  EXPECT_EQ(CheckGradient(view, DType::kF32, workers).message(),
            "element 0 is 1e+100, above 1e+18");
  EXPECT_FALSE(CheckGradient(view, DType::kBF16, workers).ok());
}

TEST(CheckGradientTest, NothingIsFiniteAndOtherTypesAreRefused) {
  const Workers workers(1);
  EXPECT_TRUE(CheckGradient({}, DType::kF32, workers).ok());
  EXPECT_EQ(CheckGradient({DType::kInt32, nullptr, 0}, DType::kF32, workers)
                .message(),
            "a gradient is f32, f64, f16 or bf16, not int32");
}

TEST(ClipByGlobalNormTest, TogetherTheyHaveThatNorm) {
  const Workers workers;
  std::vector<float> a = {3}, b = {0, 4};
  EXPECT_EQ(ClipByGlobalNorm(6, {ViewOf(&a), ViewOf(&b)}, workers).value(), 5);
  EXPECT_EQ(a[0], 3);  // unchanged, because the norm is below the limit
  EXPECT_EQ(ClipByGlobalNorm(2.5, {ViewOf(&a), ViewOf(&b)}, workers).value(),
            5);
  EXPECT_EQ(a[0], 1.5F);
  EXPECT_EQ(b[1], 2);
  EXPECT_EQ(ClipByGlobalNorm(1, {}, workers).value(), 0);
}

TEST(ClipByGlobalNormTest, BitsDependNeitherOnThreadsNorOnTheProcessor) {
  std::mt19937_64 random(NewSeed());
  const std::vector<float> first = RandomValues<float>(kMany, &random);
  std::vector<float> expected = first;
  const double norm =
      ClipByGlobalNorm(1, {ViewOf(&expected)}, Workers(1)).value();
  double plain = 0;
  for (float value : first) plain += double{value} * value;
  EXPECT_NEAR(norm, std::sqrt(plain), norm * 1e-12);
  for (int threads : {2, 5}) {
    OnEachTarget([&](int64_t target) {
      std::vector<float> values = first;
      EXPECT_EQ(
          ClipByGlobalNorm(1, {ViewOf(&values)}, Workers(threads)).value(),
          norm);
      EXPECT_TRUE(SameBits(values, expected)) << target;
    });
  }
}

TEST(ClipByGlobalNormTest, WhatIsWrongIsNamedAndChangesNothing) {
  const Workers workers(2);
  std::vector<float> a = {30, 40}, b = {1, 2, std::nanf("")};
  EXPECT_EQ(
      ClipByGlobalNorm(1, {ViewOf(&a), ViewOf(&b)}, workers).status().message(),
      "gradient 1: element 2 is nan");
  EXPECT_EQ(a[0], 30);
  for (double norm : {0.0, -1.0, HUGE_VAL, std::nan("")}) {
    EXPECT_FALSE(ClipByGlobalNorm(norm, {ViewOf(&a)}, workers).ok());
  }
  double large[] = {1e200, 1e200};
  EXPECT_EQ(ClipByGlobalNorm(1, {{DType::kF64, large, 2}}, workers)
                .status()
                .message(),
            "the gradients' norm is too large for an f64");
  int32_t integers[] = {1};
  EXPECT_FALSE(
      ClipByGlobalNorm(1, {{DType::kInt32, integers, 1}}, workers).ok());
}

TEST(ClipByGlobalNormTest, LargeF32GradientsAreClippedToo) {
  std::vector<float> values = {3e30F, 4e30F};
  EXPECT_NEAR(ClipByGlobalNorm(1, {ViewOf(&values)}, Workers(1)).value(), 5e30,
              1e24);
  EXPECT_FLOAT_EQ(values[0], 0.6F);
}

}  // namespace
}  // namespace penstock::ps::optim
