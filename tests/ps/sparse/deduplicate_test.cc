#include "ps/sparse/deduplicate.h"

#include <gtest/gtest.h>

#include <iostream>
#include <map>
#include <random>
#include <vector>

namespace penstock::ps::sparse {
namespace {

using Ids = std::vector<uint64_t>;
using Floats = std::vector<float>;

const HashKey kHash(1);

TEST(DeduplicateTest, NothingGivesNothing) {
  EXPECT_TRUE(Deduplicate({}, {}, 3, kHash).ids.empty());
  EXPECT_TRUE(FindUnique({}, kHash).row_of.empty());
}

TEST(DeduplicateTest, KeepsTheOrderOfFirstOnesAndAddsTheRest) {
  const Gradients sums =
      Deduplicate({7, 0, 7, ~uint64_t{0}, 0, 7},
                  {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, 2, kHash);
  EXPECT_EQ(sums.ids, (Ids{7, 0, ~uint64_t{0}}));
  EXPECT_EQ(sums.gradients, (Floats{17, 20, 12, 14, 7, 8}));
}

// Uses 1e8 + 1 - 1e8, which depends on the order of additions.
TEST(DeduplicateTest, AddsInTheOrderInWhichTheyStand) {
  EXPECT_EQ(Deduplicate({5, 5, 5}, {1e8f, 1, -1e8f}, 1, kHash).gradients,
            Floats{0});
  EXPECT_EQ(Deduplicate({5, 5, 5}, {1e8f, -1e8f, 1}, 1, kHash).gradients,
            Floats{1});
}

TEST(DeduplicateTest, RandomIdsGiveWhatAMapGives) {
  const auto seed = std::random_device()();
  std::cout << "seed " << seed << "\n";
  std::mt19937_64 random(seed);
  for (int round = 0; round < 300; ++round) {
    const size_t dim = 1 + random() % 5;
    const size_t count = random() % 300;
    const uint64_t range = 1 + random() % 400;
    Ids ids(count);
    Floats rows(count * dim);
    for (uint64_t& id : ids) id = random() % range << (round % 60);
    for (float& element : rows) element = static_cast<float>(random() % 1000);
    std::map<uint64_t, Floats> model;
    for (size_t i = 0; i < count; ++i) {
      Floats& sum = model.emplace(ids[i], Floats(dim)).first->second;
      for (size_t k = 0; k < dim; ++k) sum[k] += rows[i * dim + k];
    }
    const HashKey hash(random());
    const Gradients sums = Deduplicate(ids, rows, dim, hash);
    ASSERT_EQ(sums.ids.size(), model.size());
    for (size_t i = 0; i < sums.ids.size(); ++i) {
      const Floats sum(sums.gradients.begin() + i * dim,
                       sums.gradients.begin() + (i + 1) * dim);
      ASSERT_EQ(sum, model.at(sums.ids[i]));
    }
    Floats spread(count * dim);
    SpreadRows(FindUnique(ids, hash), sums.gradients, dim,
               absl::MakeSpan(spread));
    for (size_t i = 0; i < count; ++i) {
      ASSERT_EQ(
          Floats(spread.begin() + i * dim, spread.begin() + (i + 1) * dim),
          model.at(ids[i]));
    }
  }
}

}  // namespace
}  // namespace penstock::ps::sparse
