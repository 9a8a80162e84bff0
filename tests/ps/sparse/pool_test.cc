// Tests tables that have no budget of their own and share one limit.

#include "ps/sparse/pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "ps/sparse/table.h"
#include "tests/ps/sparse/small_table.h"

namespace penstock::ps::sparse {
namespace {

using ::testing::HasSubstr;

constexpr size_t kLimit = size_t{4} << 20;

// Returns options of a table in `pool`, with rows of 1 KiB.
Options OptionsIn(Pool* pool) {
  Options options = BudgetOptions(AboveBudget::kRefuse);
  options.budget_bytes = 0;
  options.pool = pool;
  return options;
}

// Pushes new ids from `first` on until a push is refused. Returns how many were
// pushed.
uint64_t Fill(Table* table, uint64_t first, absl::Status* refused) {
  uint64_t id = first;
  *refused = absl::OkStatus();
  while (refused->ok() && id < first + 100'000) {
    *refused = Push(table, {id}).status();
    if (refused->ok()) ++id;
  }
  return id - first;
}

TEST(PoolTest, TablesTogetherAreRefusedAtTheLimit) {
  Pool pool(kLimit, "do something");
  {
    auto one = Make(OptionsIn(&pool));
    const auto other = Make(OptionsIn(&pool));
    for (uint64_t id = 0; id < 1000; id += 100) {
      ASSERT_TRUE(Push(one.get(), Range(id, id + 100)).ok());
    }
    absl::Status refused;
    const uint64_t rows = Fill(other.get(), 0, &refused);
    EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted) << refused;
    EXPECT_THAT(std::string(refused.message()),
                HasSubstr("may take 4194304: do something"));
    EXPECT_GT(rows, 1500u);
    EXPECT_LE(pool.bytes(), kLimit);
    EXPECT_EQ(pool.bytes(), one->counters().bytes + other->counters().bytes);
    // Expects that existing rows stay usable.
    EXPECT_TRUE(Push(one.get(), Range(0, 1000)).ok());
    EXPECT_TRUE(Push(other.get(), Range(0, rows)).ok());
    EXPECT_EQ(Pull(other.get(), {0, rows - 1, rows}), (Floats{2, 2, 0}));
    // Frees a table, whose memory another table can then use.
    one.reset();
    EXPECT_GT(Fill(other.get(), rows, &refused), 900u);
    EXPECT_LE(pool.bytes(), kLimit);
  }
  EXPECT_EQ(pool.bytes(), 0u);
}

TEST(PoolTest, ATableWithABudgetTakesNothingOfIt) {
  Pool pool(1 << 20, "");
  Options options = BudgetOptions(AboveBudget::kRefuse);
  options.pool = &pool;
  const auto table = Make(options);
  EXPECT_TRUE(Push(table.get(), Range(0, 1500)).ok());
  EXPECT_EQ(pool.bytes(), 0u);
}

// Pushes as a server does: reserves room only for rows that are needed.
absl::StatusOr<PushResult> PushReserved(Table* table, const Ids& ids) {
  auto reserved = table->Reserve(ids, At(0));
  if (!reserved.ok()) return reserved.status();
  return table->Push(ids, Floats(ids.size() * table->options().dim, 1), At(0),
                     Add, *std::move(reserved));
}

// Tests counters, of which one table alone could take 16 MiB.
TEST(PoolTest, CandidatesLeaveRoomForTheRowsOfAllTables) {
  Pool pool(kLimit, "");
  Options options = OptionsIn(&pool);
  const auto plain = Make(options);
  options.min_count = 2;
  std::vector<std::unique_ptr<Table>> counting;
  for (int i = 0; i < 12; ++i) counting.push_back(Make(options));
  for (const auto& table : counting) {
    for (uint64_t id = 0; id < 20'000; id += 1000) {
      ASSERT_TRUE(PushReserved(table.get(), Range(id, id + 1000)).ok());
    }
    EXPECT_LE(table->counters().bytes, kLimit / 8 / 13);
  }
  for (const auto& table : counting) {
    // Alternates new ids with few ids that repeat. The repeated ids get rows.
    auto pushed = PushReserved(table.get(), Range(0, 20));
    ASSERT_TRUE(pushed.ok()) << pushed.status();
    ASSERT_EQ(pushed->not_admitted, 20u);
    pushed = PushReserved(table.get(), Range(0, 20));
    ASSERT_TRUE(pushed.ok()) << pushed.status();
    ASSERT_EQ(pushed->updated, 20u);
  }
  absl::Status refused;
  EXPECT_GT(Fill(plain.get(), 0, &refused), 2500u);
  EXPECT_LE(pool.bytes(), kLimit);
}

// Tests removed ids, of which one table alone could take 16 MiB.
TEST(PoolTest, RemovalsLeaveRoomForRows) {
  Pool pool(kLimit, "");
  Options options = OptionsIn(&pool);
  const auto other = Make(options);
  options.dim = 2;
  options.max_removals = 1 << 20;
  options.time_to_live = absl::Seconds(1);
  const auto table = Make(options);
  for (int64_t second = 0; second < 300; second += 3) {
    const uint64_t id = second * 1000;
    ASSERT_TRUE(Push(table.get(), Range(id, id + 3000), second).ok());
    while (table->Maintain(At(second + 2))) {
    }
  }
  EXPECT_EQ(table->counters().expired, 300'000u);
  absl::Status refused;
  EXPECT_GT(Fill(other.get(), 0, &refused), 2500u);
  EXPECT_LE(pool.bytes(), kLimit);
}

// Tests threads at the limit. Each thread may exceed the limit by its last
// growth: pages of rows, or an index.
TEST(PoolTest, ThreadsTogetherStayAtTheLimit) {
  Pool pool(kLimit, "");
  const auto one = Make(OptionsIn(&pool));
  const auto other = Make(OptionsIn(&pool));
  absl::Status refused[2];
  std::thread thread([&] { Fill(one.get(), 0, &refused[0]); });
  Fill(other.get(), 0, &refused[1]);
  thread.join();
  EXPECT_FALSE(refused[0].ok());
  EXPECT_FALSE(refused[1].ok());
  EXPECT_LE(pool.bytes(), kLimit + 2 * (size_t{64} << 10));
}

}  // namespace
}  // namespace penstock::ps::sparse
