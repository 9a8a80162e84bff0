// Tests a table with a tier. The tier has room, has no room, or fails.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "ps/sparse/table.h"
#include "tests/ps/sparse/memory_tier.h"
#include "tests/ps/sparse/small_table.h"
#include "tests/ps/sparse/spilling_table.h"

namespace penstock::ps::sparse {
namespace {

using ::testing::HasSubstr;

TEST(SpillTest, NoRowIsLostAndTheBudgetHolds) {
  MemoryTier tier;
  const auto table = Make(SpillOptions(&tier));
  for (uint64_t id = 0; id < 10000; id += 100) {
    ASSERT_TRUE(Push(table.get(), Range(id, id + 100)).ok());
    ASSERT_LE(table->counters().bytes, size_t{2} << 20);
  }
  EXPECT_EQ(table->counters().rows, 10000u);
  EXPECT_EQ(table->counters().spilled_rows, tier.size());
  EXPECT_GE(tier.size(), 8000u);
  EXPECT_EQ(Pull(table.get(), Range(0, 10000)), Floats(10000, 1));
  ASSERT_TRUE(Push(table.get(), Range(0, 10000)).ok());
  EXPECT_EQ(Pull(table.get(), Range(0, 10000)), Floats(10000, 2));
  EXPECT_LE(table->counters().bytes, size_t{2} << 20);
  EXPECT_EQ(table->counters().created, 10000u);
}

TEST(SpillTest, TheRowThatAShardReadsCountsInTheBudget) {
  MemoryTier tier;
  Options options = SpillOptions(&tier);
  options.dim = 100'000;
  options.budget_bytes = LeastBudget(options);
  const auto table = Make(options);
  const size_t row = options.dim * sizeof(float);
  EXPECT_GE(table->counters().bytes, options.shards * row);
  ASSERT_TRUE(Push(table.get(), Range(0, 40)).ok());
  EXPECT_EQ(Pull(table.get(), Range(0, 40)), Floats(40, 1));
  EXPECT_GE(table->counters().bytes, 2 * options.shards * row);
  EXPECT_LE(table->counters().bytes, options.budget_bytes);
}

TEST(SpillTest, WhatIsUsedStaysInMemory) {
  MemoryTier tier;
  const auto table = Make(SpillOptions(&tier));
  for (uint64_t id = 1000; id < 5000; id += 10) {
    ASSERT_TRUE(Push(table.get(), Range(id, id + 10)).ok());
    Pull(table.get(), Range(0, 10));  // have no rows yet
    ASSERT_TRUE(Push(table.get(), Range(0, 10)).ok());
  }
  EXPECT_EQ(table->counters().fetched, 0u);
  EXPECT_EQ(Pull(table.get(), {0, 9}), Floats(2, 400));
}

// Tests a push of more rows at once than memory can hold.
TEST(SpillTest, APushMayBeLargerThanTheMemory) {
  MemoryTier tier;
  const auto table = Make(SpillOptions(&tier));
  ASSERT_TRUE(Push(table.get(), Range(0, 6000)).ok());
  EXPECT_EQ(Pull(table.get(), Range(0, 6000)), Floats(6000, 1));
  auto reservation = table->Reserve(Range(3000, 9000), At(0));
  ASSERT_TRUE(reservation.ok()) << reservation.status();
  const auto result = table->Push(Range(3000, 9000), Floats(6000 * 248, 1),
                                  At(0), Add, *std::move(reservation));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->updated, 6000u);
  EXPECT_EQ(Pull(table.get(), {0, 2999, 3000, 8999}), (Floats{1, 1, 2, 1}));
  EXPECT_EQ(table->counters().reserved, 0u);
}

// Tests a push of many ids. An index for all of them would leave no room for a
// row.
TEST(SpillTest, TheSmallestMemoryTakesAPushOfAnySize) {
  MemoryTier tier;
  Options options = SpillOptions(&tier);
  options.dim = 1;
  options.budget_bytes = LeastBudget(options);
  const auto table = Make(options);
  for (int pushes = 1; pushes <= 2; ++pushes) {
    const auto pushed = Push(table.get(), Range(0, 5000));
    ASSERT_TRUE(pushed.ok()) << pushed.status();
    EXPECT_EQ(Pull(table.get(), Range(0, 5000)), Floats(5000, pushes));
    EXPECT_LE(table->counters().bytes, options.budget_bytes);
  }
}

TEST(SpillTest, ATierThatCannotBeReadIsSaidByEachCall) {
  MemoryTier tier;
  const auto table = Make(SpillOptions(&tier));
  ASSERT_TRUE(Push(table.get(), Range(0, 5000)).ok());
  auto snapshot = *table->BeginSnapshot({});
  tier.Break();
  Floats all(248);
  const absl::Status lost = table->Pull({0}, At(0), absl::MakeSpan(all));
  EXPECT_TRUE(absl::IsDataLoss(lost)) << lost;
  EXPECT_THAT(std::string(lost.message()),
              HasSubstr("'words': cannot read a row of those on disk: a test "
                        "broke it; rows are lost: restart the servers"));
  EXPECT_EQ(Push(table.get(), {4999}).status(), lost);
  EXPECT_EQ(table->Reserve({0}, At(0)).status(), lost);
  RowBlock block;
  EXPECT_EQ(snapshot->Next(10, &block).status(), lost);
  EXPECT_TRUE(block.ids.empty());
}

TEST(SpillTest, RowsExpireOnDisk) {
  MemoryTier tier;
  Options options = SpillOptions(&tier);
  options.time_to_live = absl::Seconds(10);
  const auto table = Make(options);
  ASSERT_TRUE(Push(table.get(), Range(0, 5000), 100).ok());
  ASSERT_TRUE(Push(table.get(), Range(5000, 5010), 105).ok());
  EXPECT_EQ(Pull(table.get(), {0}, 110), Floats{1});
  // Expects that the row has expired. A pull does not see it even before
  // Maintain() has removed it.
  EXPECT_EQ(Pull(table.get(), {1}, 111), Floats{0});
  while (table->Maintain(At(111))) {
  }
  EXPECT_EQ(table->counters().rows, 11u);
  EXPECT_EQ(table->counters().expired, 4999u);
  EXPECT_EQ(Pull(table.get(), {0, 5009}, 111), Floats(2, 1));
}

TEST(SpillTest, RemovedOnDiskIsRemovedAndRestoredIsReplaced) {
  MemoryTier tier;
  const auto table = Make(SpillOptions(&tier));
  ASSERT_TRUE(Push(table.get(), Range(0, 5000)).ok());
  auto first = *table->BeginSnapshot({});
  const uint32_t epoch = first->epoch();
  EXPECT_EQ(RowsOf(first.get(), 248).size(), 5000u);
  first.reset();
  EXPECT_EQ(table->Remove({0, 1, 4999, 7000}), 3u);
  EXPECT_EQ(Pull(table.get(), {0, 1, 2, 4999}), (Floats{0, 0, 1, 0}));
  SnapshotOptions since;
  since.since = epoch;
  auto second = *table->BeginSnapshot(since);
  RowBlock block;
  ASSERT_TRUE(*second->Next(100, &block));
  Ids removed = block.removed;
  while (*second->Next(100, &block)) {
    EXPECT_TRUE(block.ids.empty());
    removed.insert(removed.end(), block.removed.begin(), block.removed.end());
  }
  EXPECT_THAT(removed, testing::UnorderedElementsAre(0, 1, 4999));
  second.reset();

  block.Clear();
  block.ids = {2, 0};
  block.values = Floats(2 * 248, 7);
  block.last_use = {0, 0};
  block.updates = {5, 6};
  ASSERT_TRUE(table->Restore(block).ok());
  EXPECT_EQ(Pull(table.get(), {2, 0, 3}), (Floats{7, 7, 1}));
  EXPECT_EQ(table->counters().rows, 4998u);
}

TEST(SpillTest, OptionsThatDoNotFitEachOtherAreRefused) {
  MemoryTier tier;
  Options options = SpillOptions(nullptr);
  EXPECT_TRUE(absl::IsInvalidArgument(Table::Create(options).status()));
  options = BudgetOptions(AboveBudget::kEvict);
  options.tier = &tier;
  EXPECT_TRUE(absl::IsInvalidArgument(Table::Create(options).status()));
  options = SpillOptions(&tier);
  EXPECT_TRUE(Validate(options).ok());
  options.max_rows = 1000;
  EXPECT_TRUE(absl::IsInvalidArgument(Validate(options)));
  options.max_rows = 0;
  options.budget_bytes = 0;
  EXPECT_TRUE(absl::IsInvalidArgument(Validate(options)));
}

// Tests that a call reads only few rows that the snapshot lacks. A caller that
// waits can then be cancelled soon.
TEST(SpillTest, ACallForRowsOfASnapshotReadsFewThatItDoesNotHave) {
  MemoryTier tier;
  const auto table = Make(SpillOptions(&tier));
  ASSERT_TRUE(Push(table.get(), Range(0, 5000)).ok());
  SnapshotOptions since;
  since.since = (*table->BeginSnapshot({}))->epoch();
  auto snapshot = *table->BeginSnapshot(since);
  RowBlock block;
  size_t calls = 0;
  for (; *snapshot->Next(10, &block); ++calls) EXPECT_TRUE(block.ids.empty());
  EXPECT_GT(calls, 10u);
}

// A tier that runs a callback while a snapshot begins.
class InterruptedTier : public MemoryTier {
 public:
  absl::StatusOr<std::unique_ptr<Walk>> Begin() override {
    if (meanwhile) meanwhile();
    return MemoryTier::Begin();
  }
  std::function<void()> meanwhile;
};

// Tests a reservation at the beginning of a snapshot. If a row moved to the
// tier, the snapshot would give it twice: as a copy, and from the tier.
TEST(SpillTest, ReservingBesideTheBeginOfASnapshotMovesNoRow) {
  InterruptedTier tier;
  const auto table = Make(SpillOptions(&tier));
  ASSERT_TRUE(Push(table.get(), Range(0, 5000)).ok());
  absl::Notification is_reserved;
  std::thread other;
  tier.meanwhile = [&] {
    other = std::thread([&] {
      EXPECT_TRUE(table->Reserve(Range(5000, 5500), At(0)).ok());
      is_reserved.Notify();
    });
    // Waits for a moment, in which Reserve() must not return.
    is_reserved.WaitForNotificationWithTimeout(absl::Milliseconds(200));
  };
  auto snapshot = *table->BeginSnapshot({});
  other.join();
  EXPECT_EQ(RowsOf(snapshot.get(), 248).size(), 5000u);
}

// Tests many threads while rows move and snapshots are taken. Each snapshot
// must contain only whole pushes. All pushes are to the same 50 rows.
TEST(SpillTest, SnapshotsHaveWholePushesWhileRowsMove) {
  MemoryTier tier;
  const auto table = Make(SpillOptions(&tier));
  ASSERT_TRUE(Push(table.get(), Range(0, 4000)).ok());
  std::atomic<bool> done{false};
  std::atomic<uint64_t> pushed{4000};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 2; ++thread) {
    threads.emplace_back([&, thread] {
      std::mt19937_64 random(thread);
      while (!done) {
        const uint64_t first = random() % 80 * 50;
        ASSERT_TRUE(Push(table.get(), Range(first, first + 50)).ok());
        pushed += 50;
      }
    });
  }
  threads.emplace_back([&] {
    std::mt19937_64 random(9);
    while (!done) {
      const uint64_t first = random() % 80 * 50;
      Pull(table.get(), Range(first, first + 50));
    }
  });
  SnapshotOptions options;
  options.copy_bytes = size_t{1} << 30;
  for (int i = 0; i < 10; ++i) {
    auto snapshot = *table->BeginSnapshot(options);
    const auto rows = RowsOf(snapshot.get(), 248);
    EXPECT_EQ(rows.size(), 4000u);
    for (const auto& [id, value] : rows) {
      ASSERT_EQ(value, rows.at(id / 50 * 50)) << id;
    }
  }
  done = true;
  for (std::thread& thread : threads) thread.join();
  double sum = 0;
  for (const float value : Pull(table.get(), Range(0, 4000))) sum += value;
  EXPECT_EQ(sum, pushed);
  EXPECT_GT(table->counters().fetched, 0u);
}

}  // namespace
}  // namespace penstock::ps::sparse
