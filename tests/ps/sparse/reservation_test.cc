// Tests reservations of room for pushes that are applied later.

#include "ps/sparse/reservation.h"

#include <gtest/gtest.h>

#include <utility>

#include "ps/sparse/table.h"
#include "tests/ps/sparse/failing_memory.h"
#include "tests/ps/sparse/small_table.h"

namespace penstock::ps::sparse {
namespace {

absl::StatusOr<PushResult> PushReserved(Table* table, const Ids& ids,
                                        Reservation reservation) {
  return table->Push(ids, Floats(ids.size() * table->options().dim, 1), At(0),
                     Add, std::move(reservation));
}

TEST(ReservationTest, WhatIsReservedIsThereWhateverComesBetween) {
  const auto table = Make(BudgetOptions(AboveBudget::kRefuse));
  auto reservation = table->Reserve(Range(0, 800), At(0));
  ASSERT_TRUE(reservation.ok()) << reservation.status();
  EXPECT_EQ(reservation->rows(), 800u);
  uint64_t id = 1000;
  while (Push(table.get(), {id}).ok()) ++id;
  EXPECT_GT(id, 1000u);
  const auto result =
      PushReserved(table.get(), Range(0, 800), *std::move(reservation));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->updated, 800u);
  EXPECT_LE(table->counters().bytes, size_t{2} << 20);
  EXPECT_EQ(table->counters().reserved, 0u);
  EXPECT_EQ(Pull(table.get(), Range(0, 800)), Floats(800, 1));
  EXPECT_EQ(Pull(table.get(), Range(1000, id)), Floats(id - 1000, 1));
}

TEST(ReservationTest, AReservationThatIsNotUsedIsGivenBack) {
  const auto table = Make(BudgetOptions(AboveBudget::kRefuse));
  for (int i = 0; i < 1000; ++i) {
    auto first = table->Reserve(Range(0, 1000), At(0));
    ASSERT_TRUE(first.ok()) << i << first.status();
    const absl::Status refused =
        table->Reserve(Range(1000, 2000), At(0)).status();
    ASSERT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
    ASSERT_EQ(table->counters().reserved, 1000u);
    *first = Reservation();
    ASSERT_EQ(table->counters().reserved, 0u);
    // Moves a reservation away and back. The room is released once.
    Reservation moved = *table->Reserve(Range(1000, 2000), At(0));
    *first = std::move(moved);
    moved = *std::move(first);
    ASSERT_EQ(table->counters().reserved, 1000u);
  }
  EXPECT_EQ(table->counters().reserved, 0u);
  EXPECT_EQ(table->counters().refused, 1000u);
  EXPECT_TRUE(Push(table.get(), Range(0, 1500)).ok());
}

// Tests two pushes with common ids, each with its own reservation.
TEST(ReservationTest, MergedReservationsServeOnePush) {
  const auto table = Make(BudgetOptions(AboveBudget::kRefuse));
  ASSERT_TRUE(Push(table.get(), Range(0, 100)).ok());
  Reservation merged;
  for (const auto& ids : {Range(50, 450), Range(400, 800)}) {
    ASSERT_TRUE(merged.Merge(*table->Reserve(ids, At(0))).ok());
  }
  EXPECT_EQ(merged.rows(), 750u);
  uint64_t id = 1000;
  while (Push(table.get(), {id}).ok()) ++id;
  EXPECT_EQ(
      PushReserved(table.get(), Range(50, 800), std::move(merged))->updated,
      750u);
  EXPECT_EQ(table->counters().reserved, 0u);
  // Expects that the room of the common ids is free again.
  EXPECT_TRUE(Push(table.get(), {id}).ok());
}

TEST(ReservationTest, AReservationOfAnotherTableIsRefused) {
  const auto table = Make(SmallOptions());
  const auto other = Make(SmallOptions());
  Reservation reservation = *table->Reserve({1, 2}, At(0));
  EXPECT_EQ(reservation.Merge(*other->Reserve({1}, At(0))).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(other->counters().reserved, 0u);
  EXPECT_EQ(
      PushReserved(other.get(), {1, 2}, std::move(reservation)).status().code(),
      absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(table->counters().reserved, 0u);
  EXPECT_EQ(other->counters().rows, 0u);
  // Expects that an empty reservation fits any table.
  EXPECT_TRUE(PushReserved(other.get(), {1, 2}, Reservation()).ok());
}

// Tests that a reservation does not block other pushes, however long it is
// held.
TEST(ReservationTest, AReservationHoldsUpNoSnapshot) {
  const auto table = Make(SmallOptions());
  Reservation reservation = *table->Reserve({1, 2}, At(0));
  auto snapshot = table->BeginSnapshot({});
  ASSERT_TRUE(snapshot.ok());
  ASSERT_TRUE(PushReserved(table.get(), {1, 2}, std::move(reservation)).ok());
  RowBlock block;
  EXPECT_FALSE(*(*snapshot)->Next(10, &block));
}

// Tests an id that had a row when room was reserved. Therefore no room was
// reserved for this id.
TEST(ReservationTest, OnlyAnIdThatLosesItsRowMeanwhileIsDropped) {
  const auto table = Make(BudgetOptions(AboveBudget::kRefuse));
  ASSERT_TRUE(Push(table.get(), Range(0, 200)).ok());
  Reservation none = *table->Reserve(Range(0, 200), At(0));
  EXPECT_EQ(none.rows(), 0u);
  table->Remove(Range(0, 200));
  // Lets other pushes reserve and use all room.
  Reservation all;
  Ids ids;
  for (uint64_t id = 1000; id < 10000; ++id) {
    auto one = table->Reserve({id}, At(0));
    if (!one.ok()) continue;
    ASSERT_TRUE(all.Merge(*std::move(one)).ok());
    ids.push_back(id);
  }
  EXPECT_EQ(PushReserved(table.get(), Range(0, 200), std::move(none))->dropped,
            200u);
  EXPECT_EQ(table->counters().dropped, 200u);
  EXPECT_EQ(PushReserved(table.get(), ids, std::move(all))->updated,
            ids.size());
}

TEST(ReservationTest, WhatIsReservedStaysWithoutAnyRow) {
  FailingMemory memory;
  Options options = SmallOptions();
  options.dim = 1000;
  options.max_removals = 0;
  options.memory = &memory;
  const auto table = Make(options);
  Reservation reservation = *table->Reserve(Range(0, 5000), At(0));
  ASSERT_TRUE(Push(table.get(), {10000}).ok());
  ASSERT_EQ(table->Remove({10000}), 1u);
  memory.FailAfter(0);
  while (table->Maintain(At(0))) {
  }
  EXPECT_EQ(PushReserved(table.get(), Range(0, 5000), std::move(reservation))
                ->updated,
            5000u);
}

// Tests a table in which Maintain() has stopped in the middle of a slab of 520
// rows. Maintain() counts on free rows of that slab, all but one of which are
// reserved.
TEST(ReservationTest, RowsAreNotMovedToWhatWasReservedMeanwhile) {
  FailingMemory memory;
  Options options = SmallOptions();
  options.dim = 1000;
  options.max_removals = 0;
  options.memory = &memory;
  const auto table = Make(options);
  ASSERT_TRUE(Push(table.get(), Range(0, 20000)).ok());
  Ids gone;
  for (uint64_t id = 0; id < 20000; ++id) {
    if (id % 10 != 0) gone.push_back(id);
  }
  table->Remove(gone);
  ASSERT_TRUE(table->Maintain(At(0)));
  memory.FailAfter(0);
  const size_t elsewhere = (memory.held() / (size_t{2} << 20) - 1) * 520;
  const Ids ids = Range(20000, 20000 + elsewhere - 2000 + 1);
  auto reservation = table->Reserve(ids, At(0));
  ASSERT_TRUE(reservation.ok()) << reservation.status();
  while (table->Maintain(At(0))) {
  }
  EXPECT_EQ(PushReserved(table.get(), ids, *std::move(reservation))->updated,
            ids.size());
}

// Tests a reservation that stays while rows are made, removed and moved.
TEST(ReservationTest, WhatIsReservedStaysWhileOtherRowsGo) {
  FailingMemory memory;
  Options options = SmallOptions();
  options.dim = 1000;
  options.max_removals = 0;
  options.memory = &memory;
  const auto table = Make(options);
  const Ids ids = Range(0, 20000);
  ASSERT_TRUE(Push(table.get(), ids).ok());
  Ids gone;
  for (const uint64_t id : ids) {
    if (id % 20 != 0) gone.push_back(id);
  }
  Reservation reservation = *table->Reserve(Range(20000, 25000), At(0));
  table->Remove(gone);
  memory.FailAfter(0);
  while (table->Maintain(At(0))) {
  }
  EXPECT_LT(memory.held(), size_t{50} << 20);
  const auto result =
      PushReserved(table.get(), Range(20000, 25000), std::move(reservation));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->updated, 5000u);
  EXPECT_EQ(result->dropped, 0u);
}

}  // namespace
}  // namespace penstock::ps::sparse
