#include "ps/compression/int8.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "ps/compression/lists.h"
#include "ps/random/philox.h"
#include "tests/ps/compression/tensors.h"
#include "tests/ps/optim/random_values.h"
#include "tests/ps/seeds.h"

namespace penstock::ps::compression {
namespace {

constexpr float kTiny = std::numeric_limits<float>::min();

struct Quantized {
  std::vector<int8_t> elements;
  std::vector<float> scales;
};

// Quantizes whole blocks.
Quantized Quantize(const std::vector<float>& values, uint64_t first,
                   const Rounding& rounding) {
  const size_t blocks = values.size() / kBlock;
  struct alignas(64) Block {
    float values[kBlock];
  };
  std::vector<Block> aligned(blocks);
  for (size_t i = 0; i < values.size(); ++i) {
    aligned[i / kBlock].values[i % kBlock] = values[i];
  }
  Quantized made = {std::vector<int8_t>(values.size()),
                    std::vector<float>(blocks)};
  QuantizeBlocks(aligned[0].values, blocks, first, rounding,
                 made.elements.data(), made.scales.data());
  return made;
}

// Returns the 16 random bits of an element, by the numbers in int8.h.
uint32_t HalfOf(size_t element, uint64_t block, const Rounding& rounding) {
  const uint64_t word = element % 128;
  const uint64_t counter = 32 * block + word % 32;
  const uint32_t drawn = Philox(
      {static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32),
       static_cast<uint32_t>(rounding.step),
       static_cast<uint32_t>(rounding.step >> 32)},
      rounding.key)[word / 32];
  return element < 128 ? drawn & 0xFFFF : drawn >> 16;
}

// Quantizes by the header's formula, one element at a time.
Quantized ByFormula(const std::vector<float>& values, uint64_t first,
                    const Rounding& rounding) {
  Quantized made;
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t block = i / kBlock;
    if (i % kBlock == 0) {
      float largest = 0;
      for (size_t j = i; j < i + kBlock; ++j) {
        largest = std::max(largest, std::abs(values[j]));
      }
      float scale = largest / 127;
      if (scale * 127 > largest) scale = std::nextafter(scale, 0.0F);
      made.scales.push_back(std::max(scale, kTiny));
    }
    const float y =
        std::min(127.0F, std::max(-127.0F, values[i] / made.scales[block]));
    const double u =
        (HalfOf(i % kBlock, first + block, rounding) + 0.5) / 65536;
    const int below = static_cast<int>(std::floor(y));
    made.elements.push_back(
        static_cast<int8_t>(below + (u < double{y} - below ? 1 : 0)));
  }
  return made;
}

// Returns blocks of very different magnitudes; some are 0 or tiny.
std::vector<float> SomeBlocks(size_t blocks, std::mt19937_64* random) {
  std::vector<float> values = NormalFloats(blocks * kBlock, random);
  for (size_t i = 0; i < values.size(); ++i) {
    static const int kExponents[] = {0, -20, 50, -130, -1000};
    values[i] = std::ldexp(values[i], kExponents[i / kBlock % 5]);
  }
  return values;
}

TEST(Int8Test, IsTheFormulaOnEachProcessor) {
  RunEachSeed([](uint64_t seed) {
    std::mt19937_64 random(seed);
    const std::vector<float> values = SomeBlocks(1 + random() % 8, &random);
    const Rounding rounding = {KeyOf(random(), "v"), random()};
    const uint64_t first = random() >> (random() % 2 == 0 ? 8 : 60);
    const Quantized expected = ByFormula(values, first, rounding);
    optim::OnEachTarget([&](int64_t target) {
      const Quantized made = Quantize(values, first, rounding);
      EXPECT_EQ(made.elements, expected.elements) << target;
      EXPECT_TRUE(optim::SameBits(made.scales, expected.scales)) << target;
    });
  });
}

TEST(Int8Test, ComesBackAsElementTimesScaleFromAnyAddress) {
  std::vector<int8_t> elements(kBlock + 40);
  for (size_t i = 0; i < elements.size(); ++i) {
    elements[i] = static_cast<int8_t>(i);  // all values
  }
  const std::vector<float> scales = {0.37F, 1e18F};
  for (size_t offset : {0, 1, 3}) {
    std::vector<char> from(elements.size() + 16), by(16);
    std::memcpy(from.data() + offset, elements.data(), elements.size());
    std::memcpy(by.data() + offset, scales.data(), 8);
    optim::OnEachTarget([&](int64_t target) {
      std::vector<float> values(elements.size());
      DequantizeBlocks(from.data() + offset, by.data() + offset, values.size(),
                       values.data());
      for (size_t i = 0; i < values.size(); ++i) {
        ASSERT_EQ(values[i],
                  static_cast<float>(elements[i]) * scales[i / kBlock])
            << target;
      }
    });
  }
}

// Tests the largest magnitudes where a rounded 127th is often too large:
// between 127 / 64 and 2, for any exponent of an f32.
TEST(Int8Test, NoElementGrowsBeyondItsBlocksLargest) {
  std::mt19937_64 random(ChosenSeeds().first());
  std::uniform_real_distribution<float> below_two(127.0F / 64, 2);
  for (uint64_t step = 0; step < 2000; ++step) {
    const float largest = below_two(random);
    std::vector<float> values = NormalFloats(kBlock, &random);
    for (float& value : values) value *= 0.1F;
    values[step % kBlock] = step % 2 == 0 ? largest : -largest;
    const Quantized made = Quantize(values, 0, {{1, 2}, step});
    ASSERT_LE(made.scales[0] * 127, largest);
    ASSERT_GE(made.scales[0] * 127, largest * (1 - 3e-7F));
    ASSERT_EQ(made.elements[step % kBlock], step % 2 == 0 ? 127 : -127);
  }
}

// Tests a block that is quantized in many steps. The error of a mean of N
// values, in scales, has a standard deviation of at most 1 / (2 sqrt(N)). Of
// 256 elements, none deviates by five times as much, except for one seed in
// thousands, and the seed is fixed. The sum of all errors is checked, too,
// because it would show a bias that is invisible in single elements.
TEST(Int8Test, ErrorsAre0OnAverage) {
  constexpr int kSteps = 20'000;
  std::mt19937_64 random(1);
  const std::vector<float> values = NormalFloats(kBlock, &random);
  std::vector<double> sums(kBlock);
  float scale = 0;
  for (int step = 0; step < kSteps; ++step) {
    const Quantized made =
        Quantize(values, 3, {KeyOf(5, "v"), static_cast<uint64_t>(step)});
    scale = made.scales[0];
    for (size_t i = 0; i < kBlock; ++i) sums[i] += made.elements[i];
  }
  const double deviation = 0.5 / std::sqrt(kSteps);
  double all = 0;
  for (size_t i = 0; i < kBlock; ++i) {
    const double error = sums[i] / kSteps - double{values[i]} / scale;
    EXPECT_LT(std::abs(error), 5 * deviation) << i;
    all += error;
  }
  EXPECT_LT(std::abs(all), 5 * deviation * std::sqrt(double{kBlock}));
}

// Tests that elements of a block, of a step, and of adjacent blocks are rounded
// independently: the correlation of N pairs is within 5 / sqrt(N) of 0.
TEST(Int8Test, ElementsAreRoundedIndependently) {
  constexpr int kSteps = 4000;
  std::vector<float> values(2 * kBlock, 0.5F / 127);
  values[0] = values[kBlock] = 1;  // the other elements become 0 or 1
  double neighbours = 0, halves = 0, blocks = 0, steps = 0;
  int8_t before = 0;
  for (int step = 0; step < kSteps; ++step) {
    const std::vector<int8_t> made =
        Quantize(values, 0, {KeyOf(6, "v"), static_cast<uint64_t>(step)})
            .elements;
    const auto sign = [&](size_t i) { return made[i] * 2 - 1; };
    neighbours += sign(10) * sign(11);
    halves += sign(10) * sign(138);  // of one word of random bits
    blocks += sign(10) * sign(kBlock + 10);
    steps += sign(10) * (before * 2 - 1);
    before = made[10];
  }
  for (double sum : {neighbours, halves, blocks, steps}) {
    EXPECT_LT(std::abs(sum), 5 * std::sqrt(kSteps));
  }
}

}  // namespace
}  // namespace penstock::ps::compression

int main(int argc, char** argv) {
  return penstock::ps::RunWithSeeds(argc, argv, 50);
}
