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

// Returns the sum of each unique id's rows.
Floats Sum(const Unique& unique, const Floats& rows, size_t dim) {
  Floats sums(unique.ids.size() * dim);
  SumRows(unique, rows, dim, absl::MakeSpan(sums));
  return sums;
}

TEST(DeduplicateTest, NothingGivesNothing) {
  EXPECT_TRUE(FindUnique({}, kHash).ids.empty());
  EXPECT_TRUE(FindUnique({}, kHash).row_of.empty());
}

TEST(DeduplicateTest, KeepsTheOrderOfFirstOnesAndAddsTheRest) {
  const Unique unique = FindUnique({7, 0, 7, ~uint64_t{0}, 0, 7}, kHash);
  EXPECT_EQ(unique.ids, (Ids{7, 0, ~uint64_t{0}}));
  EXPECT_EQ(Sum(unique, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, 2),
            (Floats{17, 20, 12, 14, 7, 8}));
}

// Uses 1e8 + 1 - 1e8, which depends on the order of additions.
TEST(DeduplicateTest, AddsInTheOrderInWhichTheyStand) {
  const Unique unique = FindUnique({5, 5, 5}, kHash);
  EXPECT_EQ(Sum(unique, {1e8f, 1, -1e8f}, 1), Floats{0});
  EXPECT_EQ(Sum(unique, {1e8f, -1e8f, 1}, 1), Floats{1});
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
    const Unique unique = FindUnique(ids, HashKey(random()));
    const Floats sums = Sum(unique, rows, dim);
    ASSERT_EQ(unique.ids.size(), model.size());
    for (size_t i = 0; i < unique.ids.size(); ++i) {
      const Floats sum(sums.begin() + i * dim, sums.begin() + (i + 1) * dim);
      ASSERT_EQ(sum, model.at(unique.ids[i]));
    }
    for (size_t i = 0; i < count; ++i) {
      ASSERT_EQ(unique.ids[unique.row_of[i]], ids[i]);
    }
  }
}

}  // namespace
}  // namespace penstock::ps::sparse
