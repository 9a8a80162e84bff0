#include "ps/sparse/table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "tests/ps/sparse/failing_memory.h"

namespace penstock::ps::sparse {
namespace {

using Ids = std::vector<uint64_t>;
using Floats = std::vector<float>;

Options SmallOptions() {
  Options options;
  options.name = "words";
  options.dim = 2;
  options.shards = 1;
  options.hash_seed = 1;
  return options;
}

std::unique_ptr<Table> Make(const Options& options) {
  auto table = Table::Create(options);
  EXPECT_TRUE(table.ok()) << table.status();
  return *std::move(table);
}

absl::Time At(int64_t second) { return absl::FromUnixSeconds(second); }

void Add(const float* gradient, float* value, float* slots) {
  value[0] += gradient[0];
}

// Adds 1 to the first element of each, of a table of any dimension.
absl::StatusOr<PushResult> Push(Table* table, const Ids& ids,
                                int64_t second = 0) {
  return table->Push(ids, Floats(ids.size() * table->options().dim, 1),
                     At(second), Add);
}

// The first elements.
Floats Pull(Table* table, const Ids& ids, int64_t second = 0) {
  const size_t dim = table->options().dim;
  Floats all(ids.size() * dim);
  EXPECT_TRUE(table->Pull(ids, At(second), absl::MakeSpan(all)).ok());
  Floats first;
  for (size_t i = 0; i < ids.size(); ++i) first.push_back(all[i * dim]);
  return first;
}

Ids Range(uint64_t begin, uint64_t end) {
  Ids ids;
  for (uint64_t id = begin; id < end; ++id) ids.push_back(id);
  return ids;
}

TEST(TableTest, WhatCannotBeIsRefusedByName) {
  const auto error = [](void (*change)(Options*)) {
    Options options = SmallOptions();
    change(&options);
    const absl::Status status = Table::Create(options).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return std::string(status.message());
  };
  const struct {
    const char* field;
    void (*change)(Options*);
  } cases[] = {
      {"name", [](Options* o) { o->name = ""; }},
      {"dim", [](Options* o) { o->dim = 0; }},
      {"dim", [](Options* o) { o->dim = size_t{1} << 40; }},
      {"slots", [](Options* o) { o->initial_slots.resize(9); }},
      {"initial_slots", [](Options* o) { o->initial_slots = {NAN}; }},
      {"shards", [](Options* o) { o->shards = 0; }},
      {"shards", [](Options* o) { o->shards = 3; }},
      {"shards", [](Options* o) { o->shards = 1 << 20; }},
      {"min_count", [](Options* o) { o->min_count = 0; }},
      {"store_on_pull",
       [](Options* o) {
         o->min_count = 2;
         o->store_on_pull = true;
       }},
      {"candidates",
       [](Options* o) {
         o->min_count = 2;
         o->candidates = 0;
       }},
      {"time_to_live", [](Options* o) { o->time_to_live = absl::Seconds(-1); }},
      {"max_rows",
       [](Options* o) {
         o->max_rows = 3;
         o->shards = 4;
       }},
      {"budget_bytes", [](Options* o) { o->budget_bytes = 4096; }},
      {"max_removals", [](Options* o) { o->max_removals = size_t{1} << 50; }},
      {"retry_after", [](Options* o) { o->retry_after = absl::Seconds(-1); }},
      {"memory", [](Options* o) { o->memory = nullptr; }},
      {"initial",
       [](Options* o) {
         o->initial.kind = Initial::Kind::kUniform;
         o->initial.low = o->initial.high;
       }},
      {"initial",
       [](Options* o) {
         o->initial.kind = Initial::Kind::kNormal;
         o->initial.stddev = -1;
       }},
  };
  for (const auto& [field, change] : cases) {
    EXPECT_NE(error(change).find(field), std::string::npos) << error(change);
  }
}

TEST(TableTest, SizesThatDoNotFitAreRefused) {
  const auto table = Make(SmallOptions());
  Floats floats(3);
  EXPECT_EQ(table->Pull({1}, At(0), absl::MakeSpan(floats)).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(table->Push({1, 2}, floats, At(0), Add).status().code(),
            absl::StatusCode::kInvalidArgument);
  RowBlock block;
  block.ids = {1};
  block.values = {1, 2};
  block.last_use = {0};
  EXPECT_EQ(table->Restore(block).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(table->counters().rows, 0u);
}

TEST(TableTest, NothingAtAllIsFine) {
  const auto table = Make(SmallOptions());
  EXPECT_TRUE(table->Pull({}, At(0), {}).ok());
  EXPECT_TRUE(table->Push({}, {}, At(0), Add).ok());
  EXPECT_EQ(table->Remove({}), 0u);
  EXPECT_FALSE(table->Maintain(At(0)));
}

TEST(TableTest, APullLeavesNothingBehind) {
  Options options = SmallOptions();
  options.initial.kind = Initial::Kind::kNormal;
  const auto table = Make(options);
  const Floats first = Pull(table.get(), Range(0, 100));
  EXPECT_EQ(Pull(table.get(), Range(0, 100)), first);
  EXPECT_EQ(table->counters().rows, 0u);
  EXPECT_EQ(table->counters().misses, 200u);
  options.store_on_pull = true;
  options.shards = 8;
  options.hash_seed = 99;
  const auto storing = Make(options);
  EXPECT_EQ(Pull(storing.get(), Range(0, 100)), first);
  EXPECT_EQ(storing->counters().rows, 100u);
  EXPECT_EQ(Pull(storing.get(), Range(0, 100)), first);
  EXPECT_EQ(storing->counters().hits, 100u);
}

TEST(TableTest, TheLeastRecentlyUsedRowGoesFirst) {
  Options options = SmallOptions();
  options.max_rows = 4;
  const auto table = Make(options);
  ASSERT_TRUE(Push(table.get(), {1, 2, 3, 4}).ok());
  Pull(table.get(), {1});
  ASSERT_TRUE(Push(table.get(), {3}).ok());
  // Now 2, 4, 1, 3. Each new one takes the place of the first.
  const Ids gone = {2, 4, 1, 3};
  for (size_t i = 0; i < gone.size(); ++i) {
    ASSERT_TRUE(Push(table.get(), {100 + i}).ok());
    RowBlock block;
    ASSERT_TRUE(*(*table->BeginSnapshot({}))->Next(10, &block));
    EXPECT_EQ(block.ids.size(), 4u);
    for (size_t k = 0; k < gone.size(); ++k) {
      const bool there =
          std::count(block.ids.begin(), block.ids.end(), gone[k]);
      EXPECT_EQ(there, k > i) << gone[k] << " after " << i;
    }
  }
  EXPECT_EQ(table->counters().over_capacity, 4u);
}

TEST(TableTest, TheTimeToLiveCountsFromTheLastUse) {
  Options options = SmallOptions();
  options.time_to_live = absl::Seconds(10);
  const auto table = Make(options);
  ASSERT_TRUE(Push(table.get(), {1, 2, 3}, 100).ok());
  EXPECT_EQ(Pull(table.get(), {1}, 105), Floats{1});
  ASSERT_TRUE(Push(table.get(), {2}, 107).ok());
  EXPECT_EQ(Pull(table.get(), {3}, 110), Floats{1});
  // 3 lives until 120, 2 until 117, 1 until 115.
  EXPECT_FALSE(table->Maintain(At(115)));
  EXPECT_EQ(table->counters().rows, 3u);
  EXPECT_FALSE(table->Maintain(At(116)));
  EXPECT_EQ(table->counters().rows, 2u);
  // Not yet removed, but not seen any more either.
  EXPECT_EQ(Pull(table.get(), {2}, 118), Floats{0});
  EXPECT_EQ(table->counters().rows, 2u);
  ASSERT_TRUE(Push(table.get(), {2}, 118).ok());
  EXPECT_EQ(Pull(table.get(), {2}, 118), Floats{1});
  EXPECT_EQ(table->counters().expired, 2u);
}

TEST(TableTest, AClockThatGoesBackRemovesNothing) {
  Options options = SmallOptions();
  options.time_to_live = absl::Seconds(10);
  const auto table = Make(options);
  ASSERT_TRUE(Push(table.get(), {1}, 5000).ok());
  EXPECT_EQ(Pull(table.get(), {1}, 100), Floats{1});
  EXPECT_EQ(Pull(table.get(), {1}, -100), Floats{1});
  EXPECT_FALSE(table->Maintain(absl::InfinitePast()));
  EXPECT_EQ(table->counters().rows, 1u);
  EXPECT_EQ(Pull(table.get(), {1}, 5010), Floats{1});
  EXPECT_FALSE(table->Maintain(absl::InfiniteFuture()));
  EXPECT_EQ(table->counters().rows, 0u);
}

TEST(TableTest, GradientsOfIdsThatAreNotAdmittedDoNotCount) {
  Options options = SmallOptions();
  options.min_count = 3;
  const auto table = Make(options);
  for (int push = 1; push <= 4; ++push) {
    const auto result = Push(table.get(), {7});
    ASSERT_TRUE(result.ok());
    EXPECT_EQ(result->updated, push >= 3 ? 1u : 0u);
  }
  EXPECT_EQ(Pull(table.get(), {7}), Floats{2});
  EXPECT_EQ(table->counters().not_admitted, 2u);
  EXPECT_EQ(table->Remove({7}), 1u);
  EXPECT_EQ(Push(table.get(), {7})->not_admitted, 1u);
}

// Rows of 1 KiB and a budget of 2 MiB.
Options BudgetOptions(AboveBudget above) {
  Options options = SmallOptions();
  options.dim = 248;
  options.shards = 4;
  options.max_removals = 64;
  options.budget_bytes = size_t{2} << 20;
  options.above_budget = above;
  options.retry_after = absl::Milliseconds(1500);
  return options;
}

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
  EXPECT_EQ(RetryAfterOf(refused), absl::Milliseconds(1500));
  EXPECT_GT(id, 1500u);
  EXPECT_EQ(table->counters().rows, id);
  EXPECT_EQ(table->counters().refused, 1u);
  EXPECT_EQ(Pull(table.get(), Range(0, id)), Floats(id, 1));
  // New ids among old ones: the old ones are not changed either.
  Ids mixed = Range(0, id);
  for (uint64_t more = id; more < id + 1000; ++more) mixed.push_back(more);
  EXPECT_EQ(Push(table.get(), mixed).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Pull(table.get(), Range(0, id)), Floats(id, 1));
  EXPECT_EQ(table->counters().rows, id);
  // Old ones alone need no room.
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
  // The one that was always used, and the last.
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

// The least budget that is taken has room for a row in each shard.
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

// Each of the first requests for memory fails once.
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
  // They lay in all slabs, and Maintain() moves the others together.
  EXPECT_GT(memory.held(), size_t{60} << 20);
  while (table->Maintain(At(0))) {
  }
  EXPECT_LT(memory.held(), size_t{14} << 20);
  EXPECT_LT(table->counters().bytes, size_t{14} << 20);
  for (const uint64_t id : ids) {
    ASSERT_EQ(Pull(table.get(), {id}), Floats{id % 20 == 0 ? 1.0f : 0.0f});
  }
}

// What somebody would send who knows all but the seed.
TEST(TableHostileTest, ChosenIdsMakeNoShardAndNoRunLong) {
  const HashKey known(1);
  std::vector<Ids> attacks(4);
  for (uint64_t i = 0; attacks[3].size() < 20000; ++i) {
    if (i < 20000) {
      attacks[0].push_back(i << 44);                 // high bits only
      attacks[1].push_back(i * 0x9e3779b97f4a7c15);  // golden ratio
      attacks[2].push_back(i << 6);                  // multiples
    }
    // All in one shard and near one place, by a seed that is not the table's.
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
