#include "ps/optim/elements.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "tests/ps/optim/random_values.h"

namespace penstock::ps::optim {
namespace {

using tensor::DType;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Decodes by the definition of IEEE 754's binary16.
double HalfByDefinition(uint16_t bits) {
  const int exponent = bits >> 10 & 31, digits = bits & 1023;
  double value;
  if (exponent == 31) {
    value = digits == 0 ? HUGE_VAL : std::nan("");
  } else if (exponent == 0) {
    value = std::ldexp(digits, -24);
  } else {
    value = std::ldexp(1024 + digits, exponent - 25);
  }
  return bits & 0x8000 ? -value : value;
}

std::vector<uint16_t> AllBits() {
  std::vector<uint16_t> all(1 << 16);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

// Returns the elements as f32. Converts them in pieces.
std::vector<float> Widened(DType dtype, const std::vector<uint16_t>& bits) {
  std::vector<float> values(bits.size());
  Scratch<float> scratch;
  for (size_t at = 0; at < bits.size(); at += kPiece) {
    const size_t count = std::min(kPiece, bits.size() - at);
    GatherInto(scratch.data, Gather::kSet, dtype, bits.data() + at, count);
    std::copy_n(scratch.data, count, values.begin() + at);
  }
  return values;
}

TEST(ElementsTest, EveryF16IsWhatItsDefinitionSays) {
  OnEachTarget([](int64_t target) {
    const std::vector<uint16_t> all = AllBits();
    const std::vector<float> values = Widened(DType::kF16, all);
    for (size_t i = 0; i < all.size(); ++i) {
      const double expected = HalfByDefinition(all[i]);
      if (std::isnan(expected)) {
        ASSERT_TRUE(std::isnan(values[i])) << target << " " << i;
      } else {
        ASSERT_EQ(values[i], expected) << target << " " << i;
        ASSERT_EQ(std::signbit(values[i]), all[i] >> 15) << target << " " << i;
      }
    }
  });
}

TEST(ElementsTest, EveryBF16IsTheUpperHalfOfAnF32) {
  OnEachTarget([](int64_t target) {
    const std::vector<uint16_t> all = AllBits();
    const std::vector<float> values = Widened(DType::kBF16, all);
    for (size_t i = 0; i < all.size(); ++i) {
      uint32_t bits;
      std::memcpy(&bits, &values[i], sizeof(bits));
      ASSERT_EQ(bits, uint32_t{all[i]} << 16) << target;
    }
  });
}

TEST(ElementsTest, NarrowingWhatWasWidenedGivesItBack) {
  OnEachTarget([](int64_t target) {
    for (DType dtype : {DType::kF16, DType::kBF16}) {
      const std::vector<uint16_t> all = AllBits();
      const std::vector<float> values = Widened(dtype, all);
      std::vector<uint16_t> back(all.size());
      Narrow(values.data(), dtype, back.data(), back.size());
      for (size_t i = 0; i < all.size(); ++i) {
        if (!std::isnan(values[i])) {
          ASSERT_EQ(back[i], all[i]) << target;
        } else {
          ASSERT_TRUE(std::isnan(Widened(dtype, {back[i]})[0])) << target;
        }
      }
    }
  });
}

// Tests NaNs that rounding by their bits alone would make infinite or a zero.
TEST(ElementsTest, NarrowingKeepsEachNan) {
  OnEachTarget([](int64_t target) {
    for (uint32_t digits = 1; digits < 1 << 23; digits = digits * 2 + 1) {
      const uint32_t bits[] = {0x7F800000 | digits, 0xFF800000 | digits};
      float values[2];
      std::memcpy(values, bits, sizeof(values));
      for (DType dtype : {DType::kF16, DType::kBF16}) {
        uint16_t results[2];
        Narrow(values, dtype, results, 2);
        for (const uint16_t result : results) {
          ASSERT_TRUE(std::isnan(Widened(dtype, {result})[0]))
              << target << " " << digits;
        }
      }
    }
  });
}

// Tests three values between each two neighbours: below the middle, at the
// middle, above it.
TEST(ElementsTest, NarrowingRoundsToNearestAndTiesToEven) {
  OnEachTarget([](int64_t target) {
    for (DType dtype : {DType::kF16, DType::kBF16}) {
      const uint16_t infinity = dtype == DType::kF16 ? 0x7C00 : 0x7F80;
      for (uint16_t bits = 0; bits + 1 < infinity; ++bits) {
        const std::vector<float> ends =
            Widened(dtype, {bits, static_cast<uint16_t>(bits + 1)});
        const float middle = ends[0] + (ends[1] - ends[0]) / 2;
        const float inputs[] = {std::nextafter(middle, -kInfinity), middle,
                                std::nextafter(middle, kInfinity), -middle};
        uint16_t results[4];
        Narrow(inputs, dtype, results, 4);
        const uint16_t even = bits % 2 == 0 ? bits : bits + 1;
        ASSERT_EQ(results[0], bits) << target;
        ASSERT_EQ(results[1], even) << target;
        ASSERT_EQ(results[2], bits + 1) << target;
        ASSERT_EQ(results[3], even | 0x8000) << target;
      }
      const float beyond[] = {std::numeric_limits<float>::max(), -kInfinity};
      uint16_t results[2];
      Narrow(beyond, dtype, results, 2);
      EXPECT_EQ(results[0], infinity);
      EXPECT_EQ(results[1], infinity | 0x8000);
    }
  });
}

TEST(ElementsTest, GatheringAddsInAnyTypeFromAnyAddress) {
  std::mt19937_64 random(NewSeed());
  const size_t count = 1 + random() % 100;
  const auto first = RandomValues<double>(count, &random);
  const auto second = RandomValues<float>(count, &random);
  std::vector<char> bytes(count * sizeof(double) + 1);
  OnEachTarget([&](int64_t target) {
    Scratch<double> sum;
    std::memcpy(bytes.data() + 1, first.data(), count * sizeof(double));
    GatherInto(sum.data, Gather::kSet, DType::kF64, bytes.data() + 1, count);
    std::memcpy(bytes.data() + 1, second.data(), count * sizeof(float));
    GatherInto(sum.data, Gather::kAdd, DType::kF32, bytes.data() + 1, count);
    Divide(sum.data, 3, count);
    Scratch<float> rounded;
    GatherInto(rounded.data, Gather::kSet, DType::kF64, first.data(), count);
    for (size_t i = 0; i < count; ++i) {
      ASSERT_EQ(sum.data[i], (first[i] + second[i]) / 3) << target;
      ASSERT_EQ(rounded.data[i], static_cast<float>(first[i])) << target;
    }
  });
}

TEST(ElementsTest, TheFirstElementBeyondIsFoundWhereverItIs) {
  OnEachTarget([](int64_t target) {
    for (size_t at = 0; at < 4200; at += at < 70 || at > 4090 ? 1 : 61) {
      for (float bad : {kInfinity, -kInfinity, std::nanf(""), -11.0F}) {
        std::vector<float> values(4200, 10);
        ASSERT_EQ(FindBeyond(DType::kF32, values.data(), 10, 4200), 4200U);
        values[at] = bad;
        values.back() = kInfinity;
        ASSERT_EQ(FindBeyond(DType::kF32, values.data(), 10, 4200), at)
            << target << " " << bad;
      }
    }
    const double doubles[] = {1, -HUGE_VAL};
    EXPECT_EQ(FindBeyond(DType::kF64, doubles, 1e308, 2), 1U);
    const uint16_t halves[] = {0x7BFF, 0x7C00};
    EXPECT_EQ(FindBeyond(DType::kF16, halves, 1e18, 2), 1U);
    EXPECT_EQ(FindBeyond(DType::kBF16, halves, 1e18, 1), 0U);
    const float infinite[] = {kInfinity};
    EXPECT_EQ(FindBeyond(DType::kF32, infinite, 1e300, 1), 0U);
  });
}

TEST(ElementsTest, SquaresHaveTheSameSumOnEachProcessor) {
  std::mt19937_64 random(NewSeed());
  for (int i = 0; i < 50; ++i) {
    const auto values = RandomValues<double>(random() % 300, &random);
    const double best = SumOfSquares(DType::kF64, values.data(), values.size());
    double plain = 0;
    for (double value : values) plain += value * value;
    EXPECT_NEAR(best, plain, plain * 1e-13);
    OnEachTarget([&](int64_t target) {
      EXPECT_EQ(best, SumOfSquares(DType::kF64, values.data(), values.size()))
          << target;
    });
  }
}

TEST(ElementsTest, MultiplyingRoundsToTheElementsType) {
  OnEachTarget([](int64_t target) {
    std::vector<uint16_t> halves(37, 0x3C01);  // 1 + 2^-10
    Multiply(DType::kF16, halves.data(), 0.5, 36);
    EXPECT_EQ(halves[35], 0x3801) << target;
    EXPECT_EQ(halves[36], 0x3C01) << target;
    std::vector<double> doubles(5, 3);
    Multiply(DType::kF64, doubles.data(), 1.0 / 3, 4);
    EXPECT_EQ(doubles[3], 1);
    EXPECT_EQ(doubles[4], 3);
  });
}

TEST(ElementsTest, CopyingPastTheCachesCopiesAllAndNoMore) {
  std::mt19937_64 random(NewSeed());
  std::vector<uint8_t> from(1000), to(1200);
  for (uint8_t& byte : from) byte = static_cast<uint8_t>(random());
  OnEachTarget([&](int64_t) {
    for (int i = 0; i < 200; ++i) {
      const size_t bytes = random() % 900, at = random() % 100;
      std::fill(to.begin(), to.end(), 0xEE);
      CopyPastCaches(from.data() + at, to.data() + at + 1, bytes);
      for (size_t k = 0; k < to.size(); ++k) {
        const bool inside = k > at && k <= at + bytes;
        ASSERT_EQ(to[k], inside ? from[k - 1] : 0xEE) << k;
      }
    }
  });
}

}  // namespace
}  // namespace penstock::ps::optim
