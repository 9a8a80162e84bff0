// Tests the choice of elements: the largest, or random elements.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <vector>

#include "ps/compression/random_k.h"
#include "ps/compression/top_k.h"
#include "ps/optim/workers.h"
#include "tests/ps/compression/tensors.h"
#include "tests/ps/seeds.h"

namespace penstock::ps::compression {
namespace {

using Indices = std::vector<int32_t>;

Indices TopK(const std::vector<float>& values, size_t k, int threads) {
  Indices indices(k);
  SelectTopK(values, optim::Workers(threads), absl::MakeSpan(indices));
  return indices;
}

// Returns the indices of the k largest elements, found by sorting.
Indices Largest(const std::vector<float>& values, size_t k) {
  Indices indices(values.size());
  std::iota(indices.begin(), indices.end(), 0);
  std::stable_sort(indices.begin(), indices.end(), [&](int32_t a, int32_t b) {
    return std::abs(values[a]) > std::abs(values[b]);
  });
  indices.resize(k);
  std::sort(indices.begin(), indices.end());
  return indices;
}

// Returns values of one of several kinds, some with many ties.
std::vector<float> SomeValues(size_t count, std::mt19937_64* random) {
  std::vector<float> values = NormalFloats(count, random);
  switch ((*random)() % 5) {
    case 0:
      return values;
    case 1:  // few different ones
      for (float& value : values) value = std::round(value);
      return values;
    case 2:  // different in the last bits
      for (float& value : values) value = 1 + value * 3e-7F;
      return values;
    case 3:  // all the same, of both signs
      for (float& value : values) value = value < 0 ? -3 : 3;
      return values;
    default:  // of all exponents, with subnormal ones
      for (float& value : values) {
        value = std::ldexp(value, static_cast<int>((*random)() % 270) - 148);
      }
      return values;
  }
}

TEST(TopKTest, TakesWhatSortingByMagnitudeAndIndexTakes) {
  RunEachSeed([](uint64_t seed) {
    std::mt19937_64 random(seed);
    // Sometimes use enough elements for several tasks.
    const size_t count = 1 + random() % (random() % 8 == 0 ? 400'000 : 600);
    const std::vector<float> values = SomeValues(count, &random);
    const size_t k = random() % (count + 1);
    const Indices expected = Largest(values, k);
    ASSERT_EQ(TopK(values, k, 1), expected);
    ASSERT_EQ(TopK(values, k, 3), expected);
  });
}

TEST(TopKTest, TiesGoToTheLowestIndexAcrossTasks) {
  const std::vector<float> values(500'000, -1.0F);
  const Indices taken = TopK(values, 300'000, 4);
  EXPECT_EQ(taken.front(), 0);
  EXPECT_EQ(taken.back(), 299'999);
}

TEST(TopKTest, TakesNothingOfNothing) {
  EXPECT_TRUE(TopK({}, 0, 1).empty());
  EXPECT_TRUE(TopK({1, 2}, 0, 1).empty());
}

Indices RandomK(size_t count, size_t k, uint64_t seed, uint64_t step) {
  Indices indices(k);
  SelectRandomK(count, KeyOf(seed, "v"), step, absl::MakeSpan(indices));
  return indices;
}

TEST(RandomKTest, IndicesAscendAndAreBelowTheCount) {
  RunEachSeed([](uint64_t seed) {
    std::mt19937_64 random(seed);
    const size_t count = 1 + random() % 3000;
    const size_t k = random() % (count + 1);
    const Indices chosen = RandomK(count, k, seed, random());
    ASSERT_EQ(std::set<int32_t>(chosen.begin(), chosen.end()).size(), k);
    ASSERT_TRUE(std::is_sorted(chosen.begin(), chosen.end()));
    ASSERT_TRUE(chosen.empty() || (chosen.front() >= 0 &&
                                   static_cast<size_t>(chosen.back()) < count));
  });
  EXPECT_TRUE(RandomK(0, 0, 1, 1).empty());
}

// Tests all C(6, k) sets by chi-squared. The mean is the degrees of freedom d,
// the deviation sqrt(2 d). Five deviations are exceeded less than once in 10^5
// seeds, and the seed is fixed.
TEST(RandomKTest, EachSetIsEquallyLikely) {
  constexpr int kDraws = 60'000;
  const size_t sets[] = {6, 15, 20, 15, 6};
  for (size_t k = 1; k <= 5; ++k) {
    std::map<Indices, int> seen;
    for (uint64_t step = 0; step < kDraws; ++step) {
      ++seen[RandomK(6, k, 1, step)];
    }
    ASSERT_EQ(seen.size(), sets[k - 1]);
    const double expected = double{kDraws} / static_cast<double>(sets[k - 1]);
    double chi_squared = 0;
    for (const auto& [set, times] : seen) {
      chi_squared += (times - expected) * (times - expected) / expected;
    }
    const auto freedom = static_cast<double>(sets[k - 1] - 1);
    EXPECT_LT(chi_squared, freedom + 5 * std::sqrt(2 * freedom)) << k;
  }
}

TEST(RandomKTest, DependsOnSeedAndStepOnly) {
  const Indices chosen = RandomK(100'000, 1000, 7, uint64_t{1} << 40);
  EXPECT_EQ(RandomK(100'000, 1000, 7, uint64_t{1} << 40), chosen);
  EXPECT_NE(RandomK(100'000, 1000, 8, uint64_t{1} << 40), chosen);
  EXPECT_NE(RandomK(100'000, 1000, 7, 0), chosen);
}

// Tests the published words of Philox with counter 0 and key 0: 0x6627e8d5,
// 0xe169c58d, 0xbc57ac4c and 0x9b00dbd8. Scaled to numbers below 1000, the
// words are 399, 880, 735 and 605.
TEST(RandomKTest, DrawsTheWordsOfPhilox) {
  Indices indices(4);
  SelectRandomK(1000, {0, 0}, 0, absl::MakeSpan(indices));
  EXPECT_EQ(indices, (Indices{399, 605, 735, 880}));
}

}  // namespace
}  // namespace penstock::ps::compression

int main(int argc, char** argv) {
  return penstock::ps::RunWithSeeds(argc, argv, 200);
}
