#include "ps/sparse/table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "tests/ps/sparse/small_table.h"

namespace penstock::ps::sparse {
namespace {

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
  // Expects the order 2, 4, 1, 3. Each new row evicts the oldest.
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
  // Expects that row 3 lives until 120, row 2 until 117, and row 1 until 115.
  EXPECT_FALSE(table->Maintain(At(115)));
  EXPECT_EQ(table->counters().rows, 3u);
  EXPECT_FALSE(table->Maintain(At(116)));
  EXPECT_EQ(table->counters().rows, 2u);
  // Expects that the row is invisible, although it is not removed yet.
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

}  // namespace
}  // namespace penstock::ps::sparse
