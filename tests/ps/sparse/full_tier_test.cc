// Tests a table whose tier is full.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ps/sparse/table.h"
#include "tests/ps/sparse/memory_tier.h"
#include "tests/ps/sparse/small_table.h"
#include "tests/ps/sparse/spilling_table.h"

namespace penstock::ps::sparse {
namespace {

using ::testing::HasSubstr;

TEST(FullTierTest, WithoutRoomOnDiskAPushIsRefusedAsAWhole) {
  MemoryTier tier;
  const auto table = Make(SpillOptions(&tier));
  ASSERT_TRUE(Push(table.get(), Range(0, 3000)).ok());
  tier.Limit(tier.size());
  const absl::Status refused = Push(table.get(), Range(2990, 9000)).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("nor on disk: the tier is full"));
  EXPECT_EQ(Pull(table.get(), Range(0, 3010)), [] {
    Floats floats(3010, 1);
    std::fill(floats.begin() + 3000, floats.end(), 0);
    return floats;
  }());
  // Expects that rows in memory stay usable, and that all rows are usable once
  // the disk has room.
  EXPECT_TRUE(Push(table.get(), {2999}).ok());
  tier.Limit(SIZE_MAX);
  EXPECT_TRUE(Push(table.get(), Range(2990, 9000)).ok());
  EXPECT_EQ(Pull(table.get(), {2999, 8999}), (Floats{3, 1}));
}

// Tests that rows in the tier can be trained on a full disk, by swapping each
// of them with a row in memory.
TEST(FullTierTest, WithoutMoreRoomOnDiskTheRowsThatAreThereAreTrained) {
  MemoryTier tier;
  const auto table = Make(SpillOptions(&tier));
  ASSERT_TRUE(Push(table.get(), Range(0, 3000)).ok());
  tier.Limit(tier.size());
  const auto pushed = Push(table.get(), Range(0, 3000));
  ASSERT_TRUE(pushed.ok()) << pushed.status();
  EXPECT_EQ(pushed->updated, 3000u);
  // Reserves room for a push that is checked now and applied later.
  auto reservation = table->Reserve(Range(500, 1500), At(0));
  ASSERT_TRUE(reservation.ok()) << reservation.status();
  EXPECT_EQ(reservation->rows(), 0u);
  auto snapshot = *table->BeginSnapshot({});
  const auto result = table->Push(Range(500, 1500), Floats(1000 * 248, 1),
                                  At(0), Add, *std::move(reservation));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->updated, 1000u);
  const std::map<uint64_t, float> before = RowsOf(snapshot.get(), 248);
  EXPECT_EQ(before.size(), 3000u);
  for (const auto& [id, value] : before) EXPECT_EQ(value, 2) << id;
  EXPECT_EQ(Pull(table.get(), {0, 499, 500, 1499, 1500, 2999}),
            (Floats{2, 2, 3, 3, 2, 2}));
  // Expects that a push with one row too many is refused as a whole.
  EXPECT_EQ(Push(table.get(), Range(0, 3001)).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Pull(table.get(), {0, 2999, 3000}), (Floats{2, 2, 0}));
  const Counters counters = table->counters();
  EXPECT_LE(counters.bytes, size_t{2} << 20);
  EXPECT_EQ(counters.rows, 3000u);
  EXPECT_EQ(counters.spilled_rows, tier.size());
  EXPECT_EQ(counters.dropped, 0u);
}

// Tests a push of more rows than memory and the full disk have room for. Each
// row would fit only if another row left its place.
TEST(FullTierTest, MoreRowsThanMemoryAndDiskHaveRoomForAreNotPromised) {
  MemoryTier tier;
  const auto table = Make(SpillOptions(&tier));
  ASSERT_TRUE(Push(table.get(), Range(0, 3000)).ok());
  tier.Limit(3500);
  const absl::Status refused = Push(table.get(), Range(3000, 20'000)).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("nor on disk"));
  EXPECT_LE(tier.size(), 3500u);
  // Makes two reservations that fit separately, but not together.
  std::vector<Reservation> promised;
  absl::Status status;
  for (uint64_t id = 3000; status.ok() && id < 30'000; id += 1000) {
    auto reservation = table->Reserve(Range(id, id + 1000), At(0));
    status = reservation.status();
    if (status.ok()) promised.push_back(*std::move(reservation));
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_GE(promised.size(), 1u);
  EXPECT_LE(promised.size(), 2u);
  promised.clear();
  EXPECT_EQ(table->counters().reserved, 0u);
  EXPECT_TRUE(table->Reserve(Range(3000, 4000), At(0)).ok());
}

TEST(FullTierTest, WhatIsPromisedIsKeptWhenTheDiskFillsUp) {
  MemoryTier tier;
  const auto table = Make(SpillOptions(&tier));
  ASSERT_TRUE(Push(table.get(), Range(0, 3000)).ok());
  // Reserves more rows than the memory holds, so some of them are spilled.
  auto reservation = table->Reserve(Range(0, 6000), At(0));
  ASSERT_TRUE(reservation.ok()) << reservation.status();
  tier.Limit(0);
  const auto result = table->Push(Range(0, 6000), Floats(6000 * 248, 1), At(0),
                                  Add, *std::move(reservation));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->updated, 6000u);
  EXPECT_EQ(result->dropped, 0u);
  EXPECT_EQ(Pull(table.get(), Range(0, 6000)), [] {
    Floats floats(6000, 1);
    std::fill(floats.begin(), floats.begin() + 3000, 2);
    return floats;
  }());
  EXPECT_FALSE(Push(table.get(), Range(6000, 7000)).ok());
}

// Tests that a pull reads rows from the disk even if they cannot move to
// memory. A pull never exceeds the budget.
TEST(FullTierTest, RowsAreReadFromDiskWhereTheyCannotComeBack) {
  MemoryTier tier;
  const auto table = Make(SpillOptions(&tier));
  ASSERT_TRUE(Push(table.get(), Range(0, 3000)).ok());
  tier.Limit(0);
  EXPECT_EQ(Pull(table.get(), Range(0, 3000)), Floats(3000, 1));
  EXPECT_LE(table->counters().bytes, size_t{2} << 20);
  EXPECT_EQ(table->counters().hits, 3000u);
}

}  // namespace
}  // namespace penstock::ps::sparse
