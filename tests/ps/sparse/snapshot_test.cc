#include "ps/sparse/snapshot.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "ps/sparse/table.h"
#include "tests/ps/sparse/failing_memory.h"

namespace penstock::ps::sparse {
namespace {

using Ids = std::vector<uint64_t>;
using Floats = std::vector<float>;

constexpr size_t kDim = 8;
constexpr uint64_t kAccounts = 2000;

Options SnapshotTable() {
  Options options;
  options.name = "accounts";
  options.dim = kDim;
  options.initial_slots = {0};
  options.shards = 8;
  options.hash_seed = 5;
  return options;
}

Ids Range(uint64_t begin, uint64_t end) {
  Ids ids;
  for (uint64_t id = begin; id < end; ++id) ids.push_back(id);
  return ids;
}

void AddAll(const float* gradient, float* value, float* slots) {
  for (size_t k = 0; k < kDim; ++k) {
    value[k] += gradient[k];
    slots[k] -= gradient[k];
  }
}

absl::StatusOr<PushResult> Push(Table* table, const Ids& ids, float amount) {
  return table->Push(ids, Floats(ids.size() * kDim, amount), absl::UnixEpoch(),
                     AddAll);
}

std::unique_ptr<Table> Make(const Options& options) {
  return *Table::Create(options);
}

// Moves amounts between rows. The sum over all rows is 0 after each push, but
// not during a push.
void MoveMoney(Table* table, uint64_t seed, const std::atomic<bool>* stop) {
  std::mt19937_64 random(seed);
  while (!*stop) {
    Ids ids;
    while (ids.size() < 64) {
      const uint64_t id = random() % kAccounts;
      if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
    }
    Floats gradients;
    for (size_t i = 0; i < ids.size(); ++i) {
      const int amount = 1 + i / 2 % 7;
      gradients.insert(gradients.end(), kDim, i % 2 == 0 ? amount : -amount);
    }
    ASSERT_TRUE(table->Push(ids, gradients, absl::UnixEpoch(), AddAll).ok());
  }
}

struct Sums {
  size_t rows = 0;
  double value = 0;
  double magnitude = 0;
  uint64_t updates = 0;
};

Sums SumOf(Snapshot* snapshot, std::mt19937_64* random) {
  Sums sums;
  RowBlock block;
  while (true) {
    const auto more = snapshot->Next(1 + (*random)() % 100, &block);
    EXPECT_TRUE(more.ok()) << more.status();
    if (!more.ok() || !*more) return sums;
    sums.rows += block.ids.size();
    for (size_t i = 0; i < block.ids.size(); ++i) {
      // Expects that no row is torn: all elements of a row are equal, and all
      // elements of its slot are the opposite.
      for (size_t k = 0; k < kDim; ++k) {
        EXPECT_EQ(block.values[i * kDim + k], block.values[i * kDim]);
        EXPECT_EQ(block.slots[i * kDim + k], -block.values[i * kDim]);
      }
      sums.value += block.values[i * kDim];
      sums.magnitude += std::abs(block.values[i * kDim]);
      sums.updates += block.updates[i];
    }
  }
}

TEST(SnapshotTest, IsOfOnePointInTimeWhilePushesGoOn) {
  const auto table = Make(SnapshotTable());
  ASSERT_TRUE(Push(table.get(), Range(0, kAccounts), 0).ok());
  std::atomic<bool> stop{false};
  std::vector<std::thread> movers;
  for (uint64_t seed = 0; seed < 3; ++seed) {
    movers.emplace_back(MoveMoney, table.get(), seed, &stop);
  }
  std::mt19937_64 random(7);
  uint64_t updates = 0;
  size_t copied = 0;
  for (int round = 0; round < 40; ++round) {
    auto snapshot = table->BeginSnapshot({});
    ASSERT_TRUE(snapshot.ok());
    // Lets the pushes continue. Each has 64 rows, and a snapshot has all or
    // none of them.
    std::this_thread::yield();
    const Sums sums = SumOf(snapshot->get(), &random);
    EXPECT_EQ(sums.rows, kAccounts);
    EXPECT_EQ(sums.value, 0) << round;
    EXPECT_EQ(sums.updates % 64, kAccounts % 64);
    EXPECT_GE(sums.updates, updates);
    updates = sums.updates;
    copied += sums.magnitude > 0;
  }
  stop = true;
  for (std::thread& mover : movers) mover.join();
  EXPECT_GT(copied, 0u) << "nothing was pushed";
}

TEST(SnapshotTest, ARowThatChangesIsCopiedOnceAndOnlyIfItIsStillToCome) {
  const auto table = Make(SnapshotTable());
  ASSERT_TRUE(Push(table.get(), Range(0, 100), 1).ok());
  auto snapshot = *table->BeginSnapshot({});
  ASSERT_TRUE(Push(table.get(), {1, 2}, 1).ok());
  const size_t copied = snapshot->copied_bytes();
  EXPECT_GT(copied, 0u);
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(Push(table.get(), {1, 2}, 1).ok());
  EXPECT_EQ(snapshot->copied_bytes(), copied);
  RowBlock block;
  std::map<uint64_t, float> given;
  while (*snapshot->Next(10, &block)) {
    for (size_t i = 0; i < block.ids.size(); ++i) {
      EXPECT_EQ(block.values[i * kDim], 1);
      given[block.ids[i]] = 1;
    }
  }
  EXPECT_EQ(given.size(), 100u);
  EXPECT_EQ(snapshot->copied_bytes(), 0u);
  ASSERT_TRUE(Push(table.get(), Range(0, 100), 1).ok());
  EXPECT_EQ(snapshot->copied_bytes(), 0u);
}

TEST(SnapshotTest, RowsThatComeLaterAreNotInIt) {
  const auto table = Make(SnapshotTable());
  auto snapshot = *table->BeginSnapshot({});
  ASSERT_TRUE(Push(table.get(), Range(0, 100), 1).ok());
  RowBlock block;
  EXPECT_FALSE(*snapshot->Next(1000, &block));
}

TEST(SnapshotTest, CopiesAboveTheirBudgetFailTheSnapshotAndNoPush) {
  const auto table = Make(SnapshotTable());
  ASSERT_TRUE(Push(table.get(), Range(0, 10000), 1).ok());
  SnapshotOptions options;
  options.copy_bytes = 40000;
  auto snapshot = *table->BeginSnapshot(options);
  ASSERT_TRUE(Push(table.get(), Range(0, 10000), 1).ok());
  EXPECT_LE(snapshot->copied_bytes(), 40000u);
  RowBlock block;
  for (int again = 0; again < 2; ++again) {
    EXPECT_EQ(snapshot->Next(10, &block).status().code(),
              absl::StatusCode::kResourceExhausted);
    EXPECT_TRUE(block.ids.empty());
  }
  snapshot.reset();
  // Begins the next snapshot, which the failure does not affect.
  snapshot = *table->BeginSnapshot({});
  size_t rows = 0;
  while (*snapshot->Next(1000, &block)) rows += block.ids.size();
  EXPECT_EQ(rows, 10000u);
}

TEST(SnapshotTest, CopiesWithoutMemoryFailItToo) {
  FailingMemory memory;
  Options options = SnapshotTable();
  options.memory = &memory;
  const auto table = Make(options);
  ASSERT_TRUE(Push(table.get(), Range(0, 100), 1).ok());
  auto snapshot = *table->BeginSnapshot({});
  memory.FailAfter(0);
  ASSERT_TRUE(Push(table.get(), Range(0, 100), 1).ok());
  RowBlock block;
  EXPECT_EQ(snapshot->Next(10, &block).status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST(SnapshotTest, ThereIsOneAtATime) {
  const auto table = Make(SnapshotTable());
  auto snapshot = *table->BeginSnapshot({});
  EXPECT_EQ(table->BeginSnapshot({}).status().code(),
            absl::StatusCode::kFailedPrecondition);
  const uint32_t epoch = snapshot->epoch();
  snapshot.reset();
  snapshot = *table->BeginSnapshot({});
  EXPECT_GT(snapshot->epoch(), epoch);
}

SnapshotOptions Since(uint32_t epoch) {
  SnapshotOptions options;
  options.since = epoch;
  return options;
}

TEST(SnapshotTest, AnIncrementalOneHasWhatChangedAndWhatIsGone) {
  const auto table = Make(SnapshotTable());
  ASSERT_TRUE(Push(table.get(), Range(0, 100), 1).ok());
  const uint32_t epoch = (*table->BeginSnapshot({}))->epoch();
  ASSERT_TRUE(Push(table.get(), {5, 200}, 1).ok());
  table->Remove({7, 8});
  ASSERT_TRUE(Push(table.get(), {8}, 1).ok());
  Floats out(kDim);
  ASSERT_TRUE(table->Pull({9}, absl::UnixEpoch(), absl::MakeSpan(out)).ok());
  auto snapshot = *table->BeginSnapshot(Since(epoch));
  // Changes rows after the snapshot began. The snapshot must contain neither
  // change.
  ASSERT_TRUE(Push(table.get(), {300}, 1).ok());
  table->Remove({10});
  Ids ids;
  Ids removed;
  RowBlock block;
  while (*snapshot->Next(1, &block)) {
    ids.insert(ids.end(), block.ids.begin(), block.ids.end());
    removed.insert(removed.end(), block.removed.begin(), block.removed.end());
  }
  std::sort(ids.begin(), ids.end());
  std::sort(removed.begin(), removed.end());
  EXPECT_EQ(ids, (Ids{5, 8, 200}));
  EXPECT_EQ(removed, (Ids{7, 8}));
}

TEST(SnapshotTest, AnIncrementalOneIsRefusedWhereRemovalsAreForgotten) {
  Options options = SnapshotTable();
  options.max_removals = 16;  // 2 of each shard
  const auto table = Make(options);
  ASSERT_TRUE(Push(table.get(), Range(0, 100), 1).ok());
  const uint32_t first = (*table->BeginSnapshot({}))->epoch();
  table->Remove(Range(0, 100));
  EXPECT_EQ(table->BeginSnapshot(Since(first)).status().code(),
            absl::StatusCode::kFailedPrecondition);
  const uint32_t second = (*table->BeginSnapshot({}))->epoch();
  auto snapshot = table->BeginSnapshot(Since(second));
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  // Removes many rows. The ring of removals wraps around, so removals are
  // forgotten during the snapshot.
  ASSERT_TRUE(Push(table.get(), Range(0, 100), 1).ok());
  snapshot->reset();
  snapshot = table->BeginSnapshot(Since(second));
  table->Remove(Range(0, 10));
  (*snapshot).reset();
  table->ForgetRemovals(second + 1);
  EXPECT_FALSE(table->BeginSnapshot(Since(second)).ok());
  EXPECT_FALSE(table->BeginSnapshot(Since(1000)).ok());
}

TEST(SnapshotTest, RemovalsThatAreLostWhileItIsReadFailIt) {
  Options options = SnapshotTable();
  options.max_removals = 8;
  const auto table = Make(options);
  ASSERT_TRUE(Push(table.get(), Range(0, 1000), 1).ok());
  const uint32_t first = (*table->BeginSnapshot({}))->epoch();
  Ids one_of_each;
  const Batch batch(Range(0, 1000), table->hash(), 3);
  for (size_t s = 0; s < 8; ++s) {
    one_of_each.push_back(batch.position(batch.Begin(s)));
  }
  table->Remove(one_of_each);
  auto snapshot = table->BeginSnapshot(Since(first));
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  table->Remove(Range(0, 1000));
  RowBlock block;
  EXPECT_EQ((*snapshot)->Next(10, &block).status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST(SnapshotTest, WhatItGivesMakesTheSameTable) {
  Options options = SnapshotTable();
  options.max_rows = 200;
  options.shards = 1;
  const auto table = Make(options);
  // Uses the rows in the order 199, 198, ... 0.
  for (uint64_t id = 0; id < 200; ++id) {
    ASSERT_TRUE(table
                    ->Push({199 - id}, Floats(kDim, id),
                           absl::FromUnixSeconds(1000 + id), AddAll)
                    .ok());
  }
  const auto restored = Make(options);
  auto snapshot = *table->BeginSnapshot({});
  RowBlock block;
  while (*snapshot->Next(7, &block)) {
    std::reverse(block.ids.begin(), block.ids.end());
    std::reverse(block.values.begin(), block.values.end());
    std::reverse(block.slots.begin(), block.slots.end());
    std::reverse(block.last_use.begin(), block.last_use.end());
    std::reverse(block.updates.begin(), block.updates.end());
    ASSERT_TRUE(restored->Restore(block).ok());
  }
  restored->FinishRestore();
  EXPECT_EQ(restored->counters().rows, 200u);
  // Evicts rows 199 and 198, which were used first.
  ASSERT_TRUE(Push(restored.get(), {1000, 1001}, 1).ok());
  snapshot = *restored->BeginSnapshot({});
  ASSERT_TRUE(*snapshot->Next(1000, &block));
  for (size_t i = 0; i < block.ids.size(); ++i) {
    if (block.ids[i] >= 1000) continue;
    EXPECT_LT(block.ids[i], 198u);
    EXPECT_EQ(block.values[i * kDim], 199 - block.ids[i]);
    EXPECT_EQ(block.last_use[i], 1199 - block.ids[i]);
  }
}

TEST(SnapshotTest, WhatDoesNotFitTheBudgetIsCounted) {
  Options options = SnapshotTable();
  options.budget_bytes = size_t{1} << 20;
  options.max_removals = 0;
  const auto table = Make(options);
  RowBlock block;
  block.ids = Range(0, 20000);
  block.values.resize(20000 * kDim, 1);
  block.slots.resize(20000 * kDim, 1);
  block.last_use.resize(20000);
  block.updates.resize(20000);
  ASSERT_TRUE(table->Restore(block).ok());
  const size_t lost = table->FinishRestore().ids;
  EXPECT_GT(lost, 10000u);
  EXPECT_EQ(table->counters().rows, 20000 - lost);
  EXPECT_LE(table->counters().bytes, options.budget_bytes);
}

}  // namespace
}  // namespace penstock::ps::sparse
