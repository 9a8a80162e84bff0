// Tests rows on a disk: reading rows back, and removing their files.

#include "ps/tier/disk_tiers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "ps/sparse/table.h"

namespace penstock::ps {
namespace {

namespace fs = std::filesystem;
using sparse::Tier;
using ::testing::HasSubstr;

constexpr size_t kRow = 1000;

std::string RowOf(uint64_t id) {
  std::string row(kRow, 'r');
  std::memcpy(row.data(), &id, sizeof id);
  return row;
}

// A mode of this program, for a test that kills the process. A mere fork would
// lack RocksDB's threads.
constexpr char kFill[] = "--fill";
int Fill(const char* folder) {
  DiskOptions options;
  options.folder = folder;
  options.memory_bytes = 1 << 20;
  const auto tiers = DiskTiers::Open(options);
  if (!tiers.ok()) return 1;
  const auto tier = (*tiers)->NewTier();
  for (uint64_t id = 0; id < 5000; ++id) {
    if (!tier->Put({0, id}, RowOf(id)).ok()) return 1;
  }
  if (write(STDOUT_FILENO, "x", 1) != 1) return 1;
  pause();
  return 0;
}

class DiskTiersTest : public testing::Test {
 protected:
  void SetUp() override {
    options_.folder = testing::TempDir() + "/tiers-XXXXXX";
    ASSERT_NE(mkdtemp(options_.folder.data()), nullptr);
    options_.memory_bytes = 1 << 20;
  }
  void TearDown() override { fs::remove_all(options_.folder); }

  std::unique_ptr<DiskTiers> Open() {
    auto tiers = DiskTiers::Open(options_);
    EXPECT_TRUE(tiers.ok()) << tiers.status();
    return *std::move(tiers);
  }
  size_t Entries() const {
    return static_cast<size_t>(std::distance(
        fs::directory_iterator(options_.folder), fs::directory_iterator()));
  }

  DiskOptions options_;
};

void ExpectRow(Tier* tier, Tier::Key key, bool is_there = true) {
  std::string row(kRow, 0);
  const auto found = tier->Get(key, row.data(), row.size());
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_EQ(*found, is_there) << key.id;
  EXPECT_TRUE(!is_there || row == RowOf(key.id)) << key.id;
}

TEST_F(DiskTiersTest, RowsOfTablesAndShardsAreApart) {
  const auto tiers = Open();
  const auto one = tiers->NewTier();
  const auto two = tiers->NewTier();
  for (const uint64_t id : {uint64_t{0}, uint64_t{255}, ~uint64_t{0}}) {
    ASSERT_TRUE(one->Put({3, id}, RowOf(id)).ok());
    ExpectRow(one.get(), {3, id});
    ExpectRow(one.get(), {2, id}, false);
    ExpectRow(two.get(), {3, id}, false);
  }
  EXPECT_EQ(tiers->bytes(), 3 * kRow);
  ASSERT_TRUE(one->Erase({3, 255}).ok());
  ExpectRow(one.get(), {3, 255}, false);
  EXPECT_EQ(tiers->bytes(), 2 * kRow);
  std::string longer(kRow + 1, 0);
  EXPECT_FALSE(one->Get({3, 0}, longer.data(), longer.size()).ok());
}

// Tests more rows than memory has room for, which move between memory and disk,
// against a map.
TEST_F(DiskTiersTest, RandomProgramsDoWhatTheyDoToAMap) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  const auto tiers = Open();
  const auto tier = tiers->NewTier();
  std::map<uint64_t, bool> rows;
  std::unique_ptr<Tier::Walk> walk;
  std::map<uint64_t, bool> walked;
  for (int step = 0; step < 30000; ++step) {
    const uint64_t id = random() % 5000;
    const Tier::Key key{static_cast<uint32_t>(id % 4), id};
    if (rows.count(id) > 0) {
      ASSERT_TRUE(tier->Erase(key).ok());
      rows.erase(id);
    } else {
      ASSERT_TRUE(tier->Put(key, RowOf(id)).ok());
      rows[id] = true;
    }
    const uint64_t other = random() % 5000;
    ExpectRow(tier.get(), {static_cast<uint32_t>(other % 4), other},
              rows.count(other) > 0);
    if (step % 5000 == 100) {
      walk = *tier->Begin();
      walked = rows;
    }
    if (step % 5000 != 4000) continue;
    std::string row(kRow, 0);
    while (*walk->Next(row.data(), row.size())) {
      uint64_t id_of_row = 0;
      std::memcpy(&id_of_row, row.data(), sizeof id_of_row);
      ASSERT_EQ(row, RowOf(id_of_row));
      ASSERT_EQ(walked.erase(id_of_row), 1u);
    }
    ASSERT_TRUE(walked.empty());
    walk.reset();
  }
  EXPECT_EQ(tiers->bytes(), rows.size() * kRow);
}

// Returns the bytes that this thread has read from files.
uint64_t BytesRead() {
  std::ifstream io("/proc/thread-self/io");
  std::string name;
  uint64_t bytes = 0;
  io >> name >> bytes;
  EXPECT_EQ(name, "rchar:");
  return bytes;
}

// Tests that few blocks are read for a row, although memory has no room for the
// whole index of the files.
TEST_F(DiskTiersTest, ARowIsFoundByAFewBlocks) {
  const auto tiers = Open();
  const auto tier = tiers->NewTier();
  constexpr uint64_t kRows = 70'000;
  for (uint64_t i = 0; i < kRows; ++i) {
    const uint64_t id = i * 7919 % kRows;
    ASSERT_TRUE(tier->Put({0, id}, RowOf(id)).ok());
  }
  std::mt19937_64 random(1);
  constexpr int kReads = 200;
  const uint64_t before = BytesRead();
  for (int i = 0; i < kReads; ++i) ExpectRow(tier.get(), {0, random() % kRows});
  EXPECT_LT((BytesRead() - before) / kReads, 64u << 10);
}

TEST_F(DiskTiersTest, RowsGoWithTheirTableAndFilesWithTheProcess) {
  auto tiers = Open();
  auto tier = tiers->NewTier();
  ASSERT_TRUE(tier->Put({0, 1}, RowOf(1)).ok());
  tier.reset();
  EXPECT_EQ(tiers->bytes(), 0u);
  EXPECT_EQ(Entries(), 1u);
  tiers.reset();
  EXPECT_EQ(Entries(), 0u);
}

TEST_F(DiskTiersTest, WhatAKilledProcessLeftIsRemovedAndNothingElse) {
  const auto living = Open();
  fs::create_directory(options_.folder + "/somebody's");
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ready[1], STDOUT_FILENO);
    execl("/proc/self/exe", "disk_tiers_test", kFill, options_.folder.c_str(),
          nullptr);
    _exit(1);
  }
  char byte;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  EXPECT_EQ(Entries(), 3u);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  const auto next = Open();
  EXPECT_EQ(Entries(), 3u);
  const auto tier = living->NewTier();
  ASSERT_TRUE(tier->Put({0, 1}, RowOf(1)).ok());
  ExpectRow(tier.get(), {0, 1});
}

// Tests that the lock is removed last. If the remover of a folder is killed,
// the folder can still be removed later.
TEST_F(DiskTiersTest, TheLockIsRemovedLast) {
  auto tiers = Open();
  const std::string folder =
      fs::directory_iterator(options_.folder)->path().string();
  const int events = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  ASSERT_GE(inotify_add_watch(events, folder.c_str(), IN_DELETE), 0);
  tiers.reset();
  alignas(inotify_event) char buffer[4096];
  const ssize_t bytes = read(events, buffer, sizeof buffer);
  std::vector<std::string> removed;
  for (ssize_t at = 0; at < bytes;) {
    const auto* event = reinterpret_cast<const inotify_event*>(buffer + at);
    if ((event->mask & IN_DELETE) != 0) removed.emplace_back(event->name);
    at += static_cast<ssize_t>(sizeof *event + event->len);
  }
  EXPECT_THAT(removed, testing::ElementsAre("db", "lock"));
  close(events);
}

TEST_F(DiskTiersTest, WhyThereIsNoLockIsSaidAndNothingIsLeft) {
  rlimit files;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &files), 0);
  rlimit none = files;
  none.rlim_cur = 0;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const absl::Status refused = DiskTiers::Open(options_).status();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &files), 0);
  EXPECT_THAT(std::string(refused.message()),
              testing::AllOf(HasSubstr("rows on disk: lock " + options_.folder),
                             HasSubstr("Too many open files")));
  EXPECT_EQ(Entries(), 0u);
}

TEST_F(DiskTiersTest, AFolderThatCannotBeIsSaid) {
  options_.folder += "/file";
  std::ofstream(options_.folder) << "no folder";
  const auto tiers = DiskTiers::Open(options_);
  ASSERT_FALSE(tiers.ok());
  EXPECT_THAT(std::string(tiers.status().message()),
              HasSubstr("rows on disk: make " + options_.folder));
}

TEST_F(DiskTiersTest, TheLimitHoldsAndRoomComesBack) {
  options_.max_bytes = 10 * kRow;
  const auto tiers = Open();
  const auto tier = tiers->NewTier();
  for (uint64_t id = 0; id < 10; ++id) {
    ASSERT_TRUE(tier->Put({0, id}, RowOf(id)).ok());
  }
  const absl::Status full = tier->Put({0, 10}, RowOf(10));
  EXPECT_TRUE(absl::IsResourceExhausted(full)) << full;
  EXPECT_THAT(std::string(full.message()), HasSubstr("no more than 10000"));
  ASSERT_TRUE(tier->Erase({0, 3}).ok());
  EXPECT_TRUE(tier->Put({0, 10}, RowOf(10)).ok());
}

void Add(const float* gradient, float* value, float* slots) {
  value[0] += gradient[0];
}

constexpr uint64_t kIds = 20'000;

// Returns a table with memory for a tenth of its rows.
std::unique_ptr<sparse::Table> TableOn(sparse::Tier* tier) {
  sparse::Options options;
  options.name = "words";
  options.dim = 248;
  options.shards = 4;
  options.max_removals = 64;
  options.budget_bytes = size_t{2} << 20;
  options.above_budget = sparse::AboveBudget::kSpill;
  options.tier = tier;
  return *sparse::Table::Create(options);
}

absl::Status PushOnes(sparse::Table* table, const std::vector<uint64_t>& ids) {
  const std::vector<float> ones(ids.size() * table->options().dim, 1);
  return table->Push(ids, ones, absl::UnixEpoch(), Add).status();
}

// Makes two threads add 1 to 100 rows, 400 times each.
void PushFromTwoThreads(sparse::Table* table) {
  std::vector<std::thread> threads;
  threads.reserve(2);
  for (int thread = 0; thread < 2; ++thread) {
    threads.emplace_back([table, thread] {
      std::mt19937_64 random(thread);
      std::vector<uint64_t> ids(100);
      for (int push = 0; push < 400; ++push) {
        for (uint64_t& id : ids) id = random() % kIds;
        const absl::Status pushed = PushOnes(table, ids);
        ASSERT_TRUE(pushed.ok()) << pushed;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Returns the sum of all rows in a snapshot.
double SumOf(sparse::Table* table) {
  auto snapshot = *table->BeginSnapshot({});
  sparse::RowBlock block;
  double sum = 0;
  while (*snapshot->Next(1000, &block)) {
    for (size_t i = 0; i < block.ids.size(); ++i) {
      sum += block.values[i * table->options().dim];
    }
  }
  return sum;
}

TEST_F(DiskTiersTest, ATableLosesNothing) {
  const auto tiers = Open();
  const auto tier = tiers->NewTier();
  const auto table = TableOn(tier.get());
  PushFromTwoThreads(table.get());
  EXPECT_GT(table->counters().spilled_rows, 10000u);
  EXPECT_LE(table->counters().bytes, table->options().budget_bytes);
  EXPECT_EQ(SumOf(table.get()), 2 * 400 * 100);
}

TEST_F(DiskTiersTest, ATableAtTheLimitGoesOnWithTheRowsThatItHas) {
  options_.max_bytes = (kIds - 1500) * size_t{1024};
  const auto tiers = Open();
  const auto tier = tiers->NewTier();
  const auto table = TableOn(tier.get());
  // Adds rows until the disk is full.
  uint64_t rows = 0;
  while (rows < 2 * kIds && PushOnes(table.get(), {rows}).ok()) ++rows;
  ASSERT_GE(rows, kIds);
  ASSERT_LT(rows, 2 * kIds);
  EXPECT_LT(tier->BytesLeft(), 1024u);
  PushFromTwoThreads(table.get());
  EXPECT_EQ(SumOf(table.get()), rows + 2 * 400 * 100);
  EXPECT_EQ(table->counters().rows, rows);
  EXPECT_LE(tiers->bytes(), options_.max_bytes);
  // Allows one refused row, because another thread may have taken the room for
  // it.
  EXPECT_LE(table->counters().bytes, table->options().budget_bytes * 9 / 8);
}

}  // namespace
}  // namespace penstock::ps

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], penstock::ps::kFill) == 0) {
    return penstock::ps::Fill(argv[2]);
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
