#include "transport/device/kernels/reduce_on_host.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
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

// Half of the distance of 1 to the next number.
double UnitRoundoff(ElementType type) {
  if (type == ElementType::kF32) return 0x1p-24;
  return type == ElementType::kF16 ? 0x1p-11 : 0x1p-8;
}

// docs/gpu/kernels.md promises: n-1 additions, each of which is wrong by a
// unit's half of what is added up, and half of the last place of the result.
double Bound(ElementType type, size_t fan_in, double magnitudes,
             double result) {
  const double rounding = UnitRoundoff(type);
  const double additions =
      static_cast<double>(fan_in - 1) * 0x1p-24 * magnitudes;
  const double last = type == ElementType::kF32 ? 0 : rounding;
  // Subnormals of f16 are as far apart as this.
  const double least = type == ElementType::kF16 ? 0x1p-25 : 0;
  return additions * 1.001 + std::max(last * std::fabs(result), least) * 1.001;
}

TEST(ReduceOnHostTest, SumsAreWithinTheBoundOfTheExactOnes) {
  const uint32_t seed = Seed();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  Random random(seed);
  constexpr uint64_t kCount = 3000;
  for (ElementType type :
       {ElementType::kF32, ElementType::kF16, ElementType::kBf16}) {
    for (size_t fan_in = 1; fan_in <= 8; ++fan_in) {
      std::vector<Array> arrays(fan_in, Array(type, kCount, 0));
      std::vector<const void*> inputs;
      for (Array& array : arrays) {
        array.FillWithFractions(&random);
        inputs.push_back(array.data());
      }
      Array sum(type, kCount, 0);
      ASSERT_TRUE(
          ReduceOnHost({Operation::kSum, type, kCount, inputs, sum.data()})
              .ok());
      for (uint64_t i = 0; i < kCount; ++i) {
        // Exact: the numbers have 24 bits, and lie within 2^27 of each other.
        long double exact = 0, magnitudes = 0;
        for (const Array& array : arrays) {
          exact += array.At(i);
          magnitudes += std::fabs(array.At(i));
        }
        ASSERT_NEAR(sum.At(i), static_cast<double>(exact),
                    Bound(type, fan_in, static_cast<double>(magnitudes),
                          static_cast<double>(exact)))
            << "element " << i << " of " << fan_in << " inputs";
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
  // 1/41 is not 41 inputs; 1/5 shows it as well: 35 * fl(1/5) is not 35 / 5.
  EXPECT_EQ(ReduceFloats(Operation::kMean, {5, 5, 5, 5, 5}), 25 * 0.2f);
}

TEST(ReduceOnHostTest, AProductIsRoundedBeforeItIsAdded) {
  // Exactly 2^-24 is left, which a fused operation would return.
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
