// Tests budgets, failing memory and hostile callers.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "ps/sparse/table.h"
#include "tests/ps/sparse/failing_memory.h"
#include "tests/ps/sparse/small_table.h"

namespace penstock::ps::sparse {
namespace {

TEST(TableBudgetTest, APushForWhichThereIsNoRoomChangesNothing) {
  const auto table = Make(BudgetOptions(AboveBudget::kRefuse));
  absl::Status refused;
  uint64_t id = 0;
  while (refused.ok()) {
    refused = Push(table.get(), Range(id, id + 100)).status();
    EXPECT_LE(table->counters().bytes, size_t{2} << 20);
    if (refused.ok()) id += 100;
  }
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_GT(id, 1500u);
  EXPECT_EQ(table->counters().rows, id);
  EXPECT_EQ(table->counters().refused, 1u);
  EXPECT_EQ(Pull(table.get(), Range(0, id)), Floats(id, 1));
  // Pushes new and old ids. The refused push must leave the old rows unchanged.
  Ids mixed = Range(0, id);
  for (uint64_t more = id; more < id + 1000; ++more) mixed.push_back(more);
  EXPECT_EQ(Push(table.get(), mixed).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Pull(table.get(), Range(0, id)), Floats(id, 1));
  EXPECT_EQ(table->counters().rows, id);
  // Pushes only ids that have rows, because such a push needs no room.
  EXPECT_EQ(Push(table.get(), Range(0, id))->updated, id);
  EXPECT_EQ(Pull(table.get(), Range(0, id)), Floats(id, 2));
}

TEST(TableBudgetTest, ThereIsRoomAgainWhereRowsWereRemoved) {
  const auto table = Make(BudgetOptions(AboveBudget::kRefuse));
  uint64_t id = 0;
  while (Push(table.get(), {id}).ok()) ++id;
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(table->Remove(Range(0, id)), id);
    EXPECT_TRUE(Push(table.get(), Range(0, id)).ok());
    EXPECT_EQ(table->counters().rows, id);
  }
  EXPECT_LE(table->counters().bytes, size_t{2} << 20);
}

// Tests a push that is refused because the last shard has no room for its ids.
// The push must not keep room for its only id in the first shard.
TEST(TableBudgetTest, APushThatWasRefusedHoldsNoRoom) {
  const auto table = Make(BudgetOptions(AboveBudget::kRefuse));
  Ids first;
  Ids ids;
  for (uint64_t id = 0; ids.size() < 2000; ++id) {
    const uint64_t shard = table->hash()(id) >> 62;
    if (shard == 0) first = {id};
    if (shard == 3) ids.push_back(id);
  }
  ids.push_back(first[0]);
  for (int i = 0; i < 1000; ++i) ASSERT_FALSE(Push(table.get(), ids).ok());
  EXPECT_TRUE(Push(table.get(), first).ok());
}

// Tests a refused push, which must not leave an index for all its ids.
TEST(TableBudgetTest, AHugePushTakesNothingOfTheBudgetForGood) {
  for (const auto above : {AboveBudget::kRefuse, AboveBudget::kEvict}) {
    size_t rows[2] = {};
    for (const bool huge_before : {false, true}) {
      const auto table = Make(BudgetOptions(above));
      if (huge_before) {
        EXPECT_EQ(Push(table.get(), Range(0, 200000)).ok(),
                  above == AboveBudget::kEvict);
        table->Remove(Range(0, 200000));
      }
      for (uint64_t id = 0; id < 4000; ++id) {
        if (!Push(table.get(), {id}).ok()) break;
      }
      rows[huge_before] = table->counters().rows;
    }
    EXPECT_EQ(rows[0], rows[1]);
  }
}

// Tests two pushes of an id. Neither alone would make a row, but both together
// do.
TEST(TableBudgetTest, AnIdWithoutRoomIsAdmittedByItsNextPush) {
  Options options = BudgetOptions(AboveBudget::kRefuse);
  options.min_count = 2;
  options.candidates = 1 << 10;
  const auto table = Make(options);
  uint64_t id = 0;
  while (Push(table.get(), {id}).ok() && Push(table.get(), {id}).ok()) ++id;
  // Pushes two copies of an id of the full shard at once.
  const uint64_t full = table->hash()(id) >> 62;
  uint64_t next = id + 1;
  while (table->hash()(next) >> 62 != full) ++next;
  const auto result = Push(table.get(), {next, next});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->not_admitted, 2u);
  EXPECT_EQ(result->dropped, 0u);
  // Expects that the next push of the id needs room, and succeeds when there is
  // room.
  EXPECT_FALSE(Push(table.get(), {next}).ok());
  EXPECT_GT(table->Remove(Range(0, id)), 0u);
  EXPECT_EQ(Push(table.get(), {next})->updated, 1u);
}

TEST(TableBudgetTest, ByOptionTheLeastRecentlyUsedMakeRoom) {
  const auto table = Make(BudgetOptions(AboveBudget::kEvict));
  for (uint64_t id = 0; id < 10000; ++id) {
    ASSERT_TRUE(Push(table.get(), {id, 0}).ok());
    ASSERT_LE(table->counters().bytes, size_t{2} << 20);
  }
  const Counters counters = table->counters();
  EXPECT_GT(counters.rows, 1500u);
  EXPECT_EQ(counters.over_budget, 10000 - counters.rows);
  EXPECT_EQ(counters.refused + counters.dropped, 0u);
  // Expects the row that every push has used, and the newest rows.
  EXPECT_EQ(Pull(table.get(), {0}), Floats{10001});
  const uint64_t last = 10000 - counters.rows * 9 / 10;
  EXPECT_EQ(Pull(table.get(), Range(last, 10000)), Floats(10000 - last, 1));
  EXPECT_EQ(Pull(table.get(), {1, 2, 3}), (Floats{0, 0, 0}));
}

TEST(TableBudgetTest, APushLargerThanTheBudgetEvictsAndGoesOn) {
  const auto table = Make(BudgetOptions(AboveBudget::kEvict));
  const auto result = Push(table.get(), Range(0, 20000));
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->updated, 20000u);
  EXPECT_LE(table->counters().bytes, size_t{2} << 20);
}

TEST(TableBudgetTest, APullThatStoresGoesWithoutWhereThereIsNoRoom) {
  Options options = BudgetOptions(AboveBudget::kRefuse);
  options.store_on_pull = true;
  const auto table = Make(options);
  EXPECT_EQ(Pull(table.get(), Range(0, 10000)), Floats(10000, 0));
  EXPECT_LE(table->counters().bytes, size_t{2} << 20);
  EXPECT_GT(table->counters().rows, 1500u);
}

TEST(TableBudgetTest, CandidatesAndRemovalsArePaidForAtOnce) {
  Options options = BudgetOptions(AboveBudget::kRefuse);
  options.min_count = 2;
  options.candidates = 1 << 16;  // 1 MiB
  const auto table = Make(options);
  uint64_t id = 0;
  while (Push(table.get(), {id}).ok() && Push(table.get(), {id}).ok()) ++id;
  EXPECT_LE(table->counters().bytes, size_t{2} << 20);
  EXPECT_LT(id, 1000u);
  table->Remove(Range(0, id));
  EXPECT_LE(table->counters().bytes, size_t{2} << 20);
  options.candidates = 1 << 17;
  EXPECT_EQ(Table::Create(options).status().code(),
            absl::StatusCode::kInvalidArgument);
}

// Tests the smallest accepted budget, which has room for a row in each shard.
TEST(TableBudgetTest, WhateverBudgetIsTakenHasRoomForARow) {
  for (const size_t dim : {1, 64, 900, 5000}) {
    Options options = BudgetOptions(AboveBudget::kRefuse);
    options.dim = dim;
    options.budget_bytes = 1;
    const std::string message(Table::Create(options).status().message());
    const size_t at = message.find("at least ") + 9;
    options.budget_bytes = std::stoull(message.substr(at));
    const auto table = Make(options);
    for (uint64_t id = 0; table->counters().rows < 1; ++id) {
      ASSERT_TRUE(Push(table.get(), {id}).ok()) << dim;
    }
  }
}

// Tests that a push changes nothing if memory fails. Each of the first requests
// for memory fails once.
TEST(TableMemoryTest, WhereMemoryFailsAPushChangesNothing) {
  for (int working = 0; working < 12; ++working) {
    FailingMemory memory;
    Options options = SmallOptions();
    options.shards = 4;
    options.min_count = 1 + working % 2;
    options.memory = &memory;
    const auto table = Make(options);
    const Ids ids = Range(0, 1000);
    if (options.min_count == 2) {
      ASSERT_TRUE(Push(table.get(), ids).ok());
    }
    memory.FailAfter(working);
    auto result = Push(table.get(), ids);
    if (!result.ok()) {
      EXPECT_EQ(result.status().code(), absl::StatusCode::kResourceExhausted);
      EXPECT_EQ(table->counters().rows, 0u);
      EXPECT_EQ(Pull(table.get(), ids), Floats(1000, 0));
      memory.Heal();
      result = Push(table.get(), ids);
    }
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->updated, 1000u);
    EXPECT_EQ(Pull(table.get(), ids), Floats(1000, 1));
  }
}

TEST(TableMemoryTest, ATableThatMayEvictGoesOnWithTheMemoryItHas) {
  FailingMemory memory;
  Options options = BudgetOptions(AboveBudget::kEvict);
  options.memory = &memory;
  const auto table = Make(options);
  ASSERT_TRUE(Push(table.get(), Range(0, 100)).ok());
  memory.FailAfter(0);
  ASSERT_TRUE(Push(table.get(), Range(1000, 9000)).ok());
  EXPECT_EQ(table->counters().dropped, 0u);
  EXPECT_EQ(Pull(table.get(), {8999}), Floats{1});
}

TEST(TableMemoryTest, RowsThatGoGiveTheirMemoryBack) {
  FailingMemory memory;
  Options options = SmallOptions();
  options.dim = 1000;
  options.max_removals = 0;
  options.memory = &memory;
  const auto table = Make(options);
  const Ids ids = Range(0, 20000);
  ASSERT_TRUE(Push(table.get(), ids).ok());
  EXPECT_GT(memory.held(), size_t{70} << 20);
  Ids gone;
  for (const uint64_t id : ids) {
    if (id % 20 != 0) gone.push_back(id);
  }
  EXPECT_EQ(table->Remove(gone), gone.size());
  // Expects that memory shrinks little before Maintain(), because all slabs had
  // some of the removed rows. Maintain() compacts the remaining rows.
  EXPECT_GT(memory.held(), size_t{60} << 20);
  while (table->Maintain(At(0))) {
  }
  EXPECT_LT(memory.held(), size_t{14} << 20);
  EXPECT_LT(table->counters().bytes, size_t{14} << 20);
  for (const uint64_t id : ids) {
    ASSERT_EQ(Pull(table.get(), {id}), Floats{id % 20 == 0 ? 1.0f : 0.0f});
  }
}

// Tests a table of which Maintain() has stopped in the middle of a slab.
TEST(TableMemoryTest, ASlabThatIsBeingDrainedHasRoomIfThereIsNoOther) {
  for (const bool budget : {true, false}) {
    FailingMemory memory;
    Options options = SmallOptions();
    options.dim = 1000;
    options.max_removals = 0;
    options.memory = &memory;
    if (budget) options.budget_bytes = size_t{82} << 20;
    const auto table = Make(options);
    const Ids ids = Range(0, 20000);
    ASSERT_TRUE(Push(table.get(), ids).ok());
    Ids gone;
    for (const uint64_t id : ids) {
      if (id % 10 != 0) gone.push_back(id);
    }
    EXPECT_EQ(table->Remove(gone), gone.size());
    ASSERT_TRUE(table->Maintain(At(0)));
    const size_t held = memory.held();
    memory.FailAfter(budget ? INT64_MAX : 0);
    uint64_t id = 20000;
    while (Push(table.get(), {id}).ok()) ++id;
    // Expects that rows of 4 KiB fill all available bytes but 1 MiB. Memory
    // comes in slabs of 2 MiB, and each slab has some unused bytes.
    const size_t room = budget ? options.budget_bytes : held;
    EXPECT_GT(table->counters().rows * 4032, room - (size_t{1} << 20));
  }
}

// Tests attacks by a peer that knows everything except the seed.
TEST(TableHostileTest, ChosenIdsMakeNoShardAndNoRunLong) {
  const HashKey known(1);
  std::vector<Ids> attacks(4);
  for (uint64_t i = 0; attacks[3].size() < 20000; ++i) {
    if (i < 20000) {
      attacks[0].push_back(i << 44);                 // high bits only
      attacks[1].push_back(i * 0x9e3779b97f4a7c15);  // golden ratio
      attacks[2].push_back(i << 6);                  // multiples
    }
    // Collects ids that a different seed maps to one shard and nearly one
    // place.
    if (known(i) >> 60 == 3 && (known(i) & 3) == 0) attacks[3].push_back(i);
  }
  for (uint64_t seed = 2; seed < 6; ++seed) {
    for (const Ids& ids : attacks) {
      Options options = SmallOptions();
      options.shards = 16;
      options.hash_seed = seed;
      const auto table = Make(options);
      ASSERT_TRUE(Push(table.get(), ids).ok());
      EXPECT_EQ(table->counters().rows, 20000u);
      EXPECT_LT(table->LongestRun(), 120u);
      const Batch batch(ids, table->hash(), 4);
      for (size_t s = 0; s < 16; ++s) {
        EXPECT_NEAR(batch.End(s) - batch.Begin(s), 20000 / 16, 250) << s;
      }
    }
  }
}

TEST(TableHostileTest, AFloodOfNewIdsStaysWithinItsBudget) {
  FailingMemory memory;
  Options options = BudgetOptions(AboveBudget::kEvict);
  options.min_count = 2;
  options.candidates = 1 << 12;
  options.memory = &memory;
  const auto table = Make(options);
  for (uint64_t id = 0; id < 200000; id += 1000) {
    ASSERT_TRUE(Push(table.get(), Range(id, id + 1000)).ok());
  }
  EXPECT_EQ(table->counters().rows, 0u);
  EXPECT_LE(table->counters().bytes, size_t{2} << 20);
}

}  // namespace
}  // namespace penstock::ps::sparse
