#include "tensor_service/budget.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "tensor_service/client_shares.h"

namespace penstock::tensor {
namespace {

TEST(Budget, BytesCountUntilTheirHoldGoes) {
  Budget budget(10);
  absl::StatusOr<Budget::Hold> six = budget.Take(6);
  ASSERT_TRUE(six.ok());
  const absl::Status refused = budget.Take(5).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(absl::StrContains(refused.message(), "5 bytes and the 6"))
      << refused;
  ASSERT_TRUE(budget.Take(4).ok());
  *six = Budget::Hold();
  EXPECT_EQ(budget.held(), 0u);
  EXPECT_TRUE(budget.Take(10).ok());
}

TEST(Budget, NoSumWraps) {
  Budget budget(10);
  const absl::StatusOr<Budget::Hold> one = budget.Take(1);
  EXPECT_FALSE(budget.Take(SIZE_MAX).ok());
  EXPECT_FALSE(budget.Take(SIZE_MAX - 1).ok());
  EXPECT_EQ(budget.held(), 1u);
}

TEST(Budget, WhatIsFreedNextMakesRoom) {
  Budget budget(10);
  absl::StatusOr<Budget::Hold> old = budget.Take(8);
  absl::StatusOr<Budget::Hold> fresh = budget.Take(9, /*freed=*/8);
  ASSERT_TRUE(fresh.ok());
  EXPECT_EQ(budget.held(), 17u);
  EXPECT_FALSE(budget.Take(1).ok());
  *old = Budget::Hold();
  EXPECT_EQ(budget.held(), 9u);
}

TEST(Budget, PartsOfAHoldGoOneByOne) {
  Budget budget(10);
  absl::StatusOr<Budget::Hold> all = budget.Take(10);
  {
    const Budget::Hold part = all->Split(4);
    EXPECT_EQ(part.bytes(), 4u);
    EXPECT_EQ(budget.held(), 10u);
  }
  EXPECT_EQ(budget.held(), 6u);
  EXPECT_EQ(all->bytes(), 6u);
}

TEST(Budget, HoldMayOutliveIt) {
  auto budget = std::make_unique<Budget>(10);
  absl::StatusOr<Budget::Hold> hold = budget->Take(10);
  budget.reset();
  EXPECT_EQ(hold->bytes(), 10u);
}

TEST(ClientShares, OneClientLeavesRoomForTheNextAndThatForAThird) {
  ClientShares shares(100, 0.5);
  std::vector<ClientShares::Hold> holds;
  for (const auto& expected : std::vector<std::pair<std::string, size_t>>{
           {"a", 50}, {"b", 25}, {"c", 12}}) {
    EXPECT_EQ(shares.Take(expected.first, expected.second + 1).status().code(),
              absl::StatusCode::kResourceExhausted);
    auto hold = shares.Take(expected.first, expected.second);
    ASSERT_TRUE(hold.ok()) << hold.status();
    holds.push_back(*std::move(hold));
    EXPECT_FALSE(shares.Take(expected.first, 1).ok());
  }
}

TEST(ClientShares, WhatIsGivenBackCanBeTakenAgain) {
  ClientShares shares(100, 0.5);
  for (int i = 0; i < 3; ++i) {
    const auto hold = shares.Take("a", 50);
    EXPECT_TRUE(hold.ok()) << i;
  }
}

TEST(ClientShares, ShareOfOneIsEverything) {
  ClientShares shares(SIZE_MAX, 1);
  const auto all = shares.Take("a", SIZE_MAX);
  ASSERT_TRUE(all.ok());
  EXPECT_FALSE(shares.Take("a", 1).ok());
  EXPECT_FALSE(shares.Take("b", 1).ok());
}

TEST(ClientShares, NothingLimitsTheProgramItself) {
  ClientShares shares(1, 0.5);
  EXPECT_TRUE(shares.Take("", SIZE_MAX).ok());
  EXPECT_FALSE(shares.Take("a", 1).ok()) << "half of one is none";
}

TEST(ClientShares, HoldMayOutliveThem) {
  auto shares = std::make_unique<ClientShares>(10, 1);
  const auto hold = shares->Take("a", 10);
  shares.reset();
  EXPECT_TRUE(hold.ok());
}

}  // namespace
}  // namespace penstock::tensor
