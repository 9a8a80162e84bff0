#include "transport/device/kernels/reduce_on_host.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "tests/transport/device/kernels/arrays.h"
#include "tests/transport/device/kernels/cases.h"
#include "tests/transport/device/kernels/reference.h"

namespace penstock::device::kernels {
namespace {

uint32_t Seed() { return std::random_device()(); }

TEST(ReduceOnHostTest, EachBitIsThatOfTheReference) {
  const uint32_t seed = Seed();
  Random random(seed);
  for (int i = 0; i < 1000; ++i) {
    Case one(&random);
    SCOPED_TRACE(testing::Message()
                 << "seed " << seed << ", " << i << ": " << one);
    const std::vector<uint32_t> expected = one.Expected();
    ASSERT_TRUE(ReduceOnHost(one.reduction()).ok());
    ASSERT_EQ(one.Output(), expected);
    ASSERT_TRUE(one.NothingElseWasWritten());
  }
}

// Returns the bound of docs/gpu/kernels.md: the sum of
// - n-1 additions, each with an error of 2^-24 of the added numbers;
// - for a mean, 2^-23 of the mean;
// - half of the last place of a 16-bit result;
// - a thousandth more, for the products of these errors.
double Bound(const Reduction& reduction, double magnitudes, double exact) {
  const size_t fan_in = reduction.inputs.size();
  double bound = static_cast<double>(fan_in - 1) * 0x1p-24 * magnitudes;
  if (reduction.operation == Operation::kMean) {
    bound = bound / static_cast<double>(fan_in) + 0x1p-23 * std::fabs(exact);
  }
  if (reduction.type == ElementType::kF16) {
    // Adds half of the distance between subnormal numbers, which is 2^-24.
    bound += std::max(0x1p-11 * std::fabs(exact), 0x1p-25);
  } else if (reduction.type == ElementType::kBf16) {
    bound += 0x1p-8 * std::fabs(exact);
  }
  return bound * 1.001;
}

void ExpectWithinBound(Operation operation, ElementType type, size_t fan_in,
                       Random* random) {
  constexpr uint64_t kCount = 2000;
  std::vector<Array> arrays(fan_in, Array(type, kCount, 0));
  std::vector<const void*> inputs;
  for (Array& array : arrays) {
    array.FillWithFractions(random);
    inputs.push_back(array.data());
  }
  Array output(type, kCount, 0);
  const Reduction reduction = {operation, type, kCount, inputs, output.data()};
  ASSERT_TRUE(ReduceOnHost(reduction).ok());
  for (uint64_t i = 0; i < kCount; ++i) {
    double exact = 0, magnitudes = 0;  // exact, except for 2^-53 of the numbers
    for (const Array& array : arrays) {
      exact += array.At(i);
      magnitudes += std::fabs(array.At(i));
    }
    if (operation == Operation::kMean) exact /= static_cast<double>(fan_in);
    ASSERT_NEAR(output.At(i), exact, Bound(reduction, magnitudes, exact))
        << "element " << i << " of " << fan_in << " inputs";
  }
}

TEST(ReduceOnHostTest, SumsAndMeansAreWithinTheBoundsThatAreDocumented) {
  const uint32_t seed = Seed();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  Random random(seed);
  for (Operation operation : {Operation::kSum, Operation::kMean}) {
    for (ElementType type :
         {ElementType::kF32, ElementType::kF16, ElementType::kBf16}) {
      for (size_t fan_in = 1; fan_in <= 8; ++fan_in) {
        ExpectWithinBound(operation, type, fan_in, &random);
      }
    }
  }
}

float ReduceFloats(Operation operation, std::vector<float> inputs,
                   float output = 0, float scale = 1) {
  std::vector<const void*> addresses;
  for (const float& input : inputs) addresses.push_back(&input);
  EXPECT_TRUE(
      ReduceOnHost({operation, ElementType::kF32, 1, addresses, &output, scale})
          .ok());
  return output;
}

TEST(ReduceOnHostTest, InputsAreAddedInTheirOrder) {
  EXPECT_EQ(ReduceFloats(Operation::kSum, {1e8f, -1e8f, 1}), 1);
  EXPECT_EQ(ReduceFloats(Operation::kSum, {1, 1e8f, -1e8f}), 0);
}

TEST(ReduceOnHostTest, AMeanIsMultipliedByTheRoundedInverse) {
  EXPECT_EQ(ReduceFloats(Operation::kMean, {1, 2, 6}), 9 * (1.0f / 3));
  EXPECT_EQ(ReduceFloats(Operation::kMean, {3, 5, 4, 8}), 5);
  EXPECT_EQ(ReduceFloats(Operation::kMean, {5, 5, 5, 5, 5}), 25 * 0.2f);
}

TEST(ReduceOnHostTest, AProductIsRoundedBeforeItIsAdded) {
  // Chooses numbers whose exact result is 2^-24, which a fused operation would
  // return.
  const float factor = 1 + 0x1p-12f;
  EXPECT_EQ(
      ReduceFloats(Operation::kScaledAdd, {factor}, -(1 + 0x1p-11f), factor),
      0);
  EXPECT_EQ(ReduceFloats(Operation::kScaledAdd, {3}, 10, -2), 4);
}

TEST(ReduceOnHostTest, AMeanOfHalvesDoesNotOverflowOnItsWay) {
  const std::vector<uint16_t> large(4, NearestHalf(60000));
  const std::vector<const void*> inputs(8, large.data());
  std::vector<uint16_t> mean(4), sum(4);
  ASSERT_TRUE(ReduceOnHost(
                  {Operation::kMean, ElementType::kF16, 4, inputs, mean.data()})
                  .ok());
  EXPECT_EQ(mean, large);
  ASSERT_TRUE(
      ReduceOnHost({Operation::kSum, ElementType::kF16, 4, inputs, sum.data()})
          .ok());
  EXPECT_EQ(sum, std::vector<uint16_t>(4, 0x7c00));
}

TEST(ReduceOnHostTest, WhatMayNotBeReducedIsRefusedAndNotTouched) {
  std::vector<float> values(8, 1.0f);
  const std::vector<const void*> inputs = {values.data()};
  EXPECT_EQ(ReduceOnHost({Operation::kSum, ElementType::kF32, 4, inputs,
                          values.data() + 1})
                .code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(values, std::vector<float>(8, 1.0f));
}

}  // namespace
}  // namespace penstock::device::kernels
