#include "ps/sparse/initial_value.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "ps/random/mix.h"
#include "ps/random/philox.h"

namespace penstock::ps::sparse {
namespace {

using Words = std::array<uint32_t, 4>;

Initial Uniform(float low, float high) {
  Initial initial;
  initial.kind = Initial::Kind::kUniform;
  initial.low = low;
  initial.high = high;
  return initial;
}

Initial Normal(float mean, float stddev) {
  Initial initial;
  initial.kind = Initial::Kind::kNormal;
  initial.mean = mean;
  initial.stddev = stddev;
  return initial;
}

std::vector<float> RowOf(const InitialValue& value, uint64_t id, size_t dim) {
  std::vector<float> row(dim);
  value.Fill(id, dim, row.data());
  return row;
}

uint32_t BitsOf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

TEST(InitialValueTest, IsAFunctionOfSeedTableAndId) {
  const InitialValue value(Uniform(-1, 1), 7, "words");
  EXPECT_EQ(RowOf(value, 5, 9),
            RowOf(InitialValue(Uniform(-1, 1), 7, "words"), 5, 9));
  EXPECT_NE(RowOf(value, 5, 9), RowOf(value, 6, 9));
  EXPECT_NE(RowOf(value, 5, 9), RowOf(value, 5 | uint64_t{1} << 40, 9));
  EXPECT_NE(RowOf(value, 5, 9),
            RowOf(InitialValue(Uniform(-1, 1), 8, "words"), 5, 9));
  EXPECT_NE(RowOf(value, 5, 9),
            RowOf(InitialValue(Uniform(-1, 1), 7, "users"), 5, 9));
}

TEST(InitialValueTest, AnElementDoesNotDependOnHowManyFollow) {
  const InitialValue value(Normal(0, 1), 7, "words");
  const std::vector<float> all = RowOf(value, 5, 67);
  for (const size_t dim : {1, 2, 3, 4, 5, 66}) {
    EXPECT_EQ(RowOf(value, 5, dim),
              std::vector<float>(all.begin(), all.begin() + dim));
  }
}

// Tests the exact bits, to find a machine or compiler that computes something
// else. The expected bits come from a few lines of Python that follow the
// header's description.
TEST(InitialValueTest, HasTheSameBitsOnEachMachine) {
  const std::vector<float> uniform = RowOf(
      InitialValue(Uniform(-0.5f, 0.5f), 42, "golden"), 0x123456789abcdef0, 4);
  const std::vector<float> normal =
      RowOf(InitialValue(Normal(1, 0.1f), 42, "golden"), 0x123456789abcdef0, 4);
  const uint32_t golden[2][4] = {
      {0x3e0fe6b4, 0x3d10fef0, 0x3e923730, 0x3c2e73c0},
      {0x3f686e85, 0x3f7aab74, 0x3f6e4118, 0x3f7ecf9e}};
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(BitsOf(uniform[i]), golden[0][i])
        << std::hex << BitsOf(uniform[i]);
    EXPECT_EQ(BitsOf(normal[i]), golden[1][i]) << std::hex << BitsOf(normal[i]);
  }
}

TEST(InitialValueTest, ZerosAreZeros) {
  EXPECT_EQ(RowOf(InitialValue(Initial(), 7, "words"), 5, 9),
            std::vector<float>(9));
}

TEST(InitialValueTest, UniformValuesFillTheirRangeEvenly) {
  const InitialValue value(Uniform(-0.5f, 1.5f), 7, "words");
  std::vector<int> tenths(20);
  for (uint64_t id = 0; id < 2000; ++id) {
    for (const float element : RowOf(value, id, 64)) {
      ASSERT_GE(element, -0.5f);
      ASSERT_LT(element, 1.5f);
      ++tenths[static_cast<int>((element + 0.5f) * 10)];
    }
  }
  // Expects 6,400 each, with a deviation of about 80.
  EXPECT_GT(*std::min_element(tenths.begin(), tenths.end()), 6000);
  EXPECT_LT(*std::max_element(tenths.begin(), tenths.end()), 6800);
}

TEST(InitialValueTest, ARangeOfTwoNeighboursStaysBelowItsEnd) {
  const float low = 16777216;
  const InitialValue value(Uniform(low, low + 2), 7, "words");
  for (uint64_t id = 0; id < 100; ++id) {
    for (const float element : RowOf(value, id, 64)) EXPECT_EQ(element, low);
  }
}

TEST(InitialValueTest, NormalValuesHaveTheMomentsOfTheirDistribution) {
  const InitialValue value(Normal(3, 2), 7, "words");
  double moments[5] = {};
  const int rows = 4000;
  for (uint64_t id = 0; id < rows; ++id) {
    for (const float element : RowOf(value, id, 64)) {
      double power = 1;
      for (double& moment : moments) {
        moment += power;
        power *= (element - 3) / 2;
      }
    }
  }
  for (int k = 1; k < 5; ++k) moments[k] /= moments[0];
  // Allows several times the deviation of 256,000 draws.
  EXPECT_NEAR(moments[1], 0, 0.01);
  EXPECT_NEAR(moments[2], 1, 0.015);
  EXPECT_NEAR(moments[3], 0, 0.04);
  EXPECT_NEAR(moments[4], 3, 0.12);
}

// Compares with the C library's functions, whose last bits differ.
TEST(InitialValueTest, NormalValuesAreThoseOfBoxAndMuller) {
  uint64_t table = 0xcbf29ce484222325;
  for (const char c : {'t'}) table = (table ^ c) * 0x100000001b3;
  const uint64_t key = Mix(9 ^ table);
  const InitialValue value(Normal(0, 1), 9, "t");
  for (uint64_t id = 0; id < 20000; ++id) {
    const Words words =
        Philox({static_cast<uint32_t>(id), 0, 0, 0},
               {static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)});
    const std::vector<float> row = RowOf(value, id, 4);
    for (int i = 0; i < 4; i += 2) {
      const double radius =
          std::sqrt(-2 * std::log(((words[i] >> 8) + 1) / 16777216.0));
      const double angle = words[i + 1] / 4294967296.0 * 2 * M_PI;
      ASSERT_NEAR(row[i], radius * std::cos(angle), 1e-6) << id;
      ASSERT_NEAR(row[i + 1], radius * std::sin(angle), 1e-6) << id;
    }
  }
}

}  // namespace
}  // namespace penstock::ps::sparse
