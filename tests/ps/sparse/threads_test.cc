// Tests a table that many threads use. ThreadSanitizer checks their accesses.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <numeric>
#include <random>
#include <thread>
#include <unordered_map>
#include <vector>

#include "ps/sparse/table.h"

namespace penstock::ps::sparse {
namespace {

using Ids = std::vector<uint64_t>;
using Floats = std::vector<float>;

constexpr size_t kDim = 16;
constexpr int kThreads = 4;
constexpr int kPushes = 300;

void AddAll(const float* gradient, float* value, float* slots) {
  for (size_t k = 0; k < kDim; ++k) value[k] += gradient[k];
}

Options SharedTable() {
  Options options;
  options.name = "shared";
  options.dim = kDim;
  options.shards = 4;
  options.hash_seed = 3;
  return options;
}

Ids SomeIds(std::mt19937_64* random) {
  Ids ids;
  for (uint64_t id = (*random)() % 20; id < 500; id += 1 + (*random)() % 20) {
    ids.push_back(id);
  }
  return ids;
}

// Runs `work(thread)` on all threads.
template <typename Work>
void OnThreads(const Work& work) {
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back(work, thread);
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(TableThreadsTest, NoPushIsLostAndNoPullIsTorn) {
  const auto table = *Table::Create(SharedTable());
  std::atomic<uint64_t> pushed{0};
  OnThreads([&](int thread) {
    std::mt19937_64 random(thread);
    for (int i = 0; i < kPushes; ++i) {
      const Ids ids = SomeIds(&random);
      const auto result = table->Push(ids, Floats(ids.size() * kDim, 1),
                                      absl::UnixEpoch(), AddAll);
      ASSERT_TRUE(result.ok());
      ASSERT_EQ(result->updated, ids.size());
      pushed += ids.size();
      const Ids others = SomeIds(&random);
      Floats out(others.size() * kDim);
      ASSERT_TRUE(
          table->Pull(others, absl::UnixEpoch(), absl::MakeSpan(out)).ok());
      for (size_t k = 0; k < out.size(); ++k) {
        ASSERT_EQ(out[k], out[k / kDim * kDim]);
      }
    }
  });
  Ids all(500);
  for (size_t i = 0; i < all.size(); ++i) all[i] = i;
  Floats out(all.size() * kDim);
  ASSERT_TRUE(table->Pull(all, absl::UnixEpoch(), absl::MakeSpan(out)).ok());
  double sum = 0;
  for (size_t i = 0; i < all.size(); ++i) sum += out[i * kDim];
  EXPECT_EQ(sum, pushed);
}

// Runs the tasks on all threads, in any order.
void OnAllThreads(size_t tasks, absl::FunctionRef<void(size_t)> task) {
  std::vector<size_t> order(tasks);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937_64(tasks));
  std::atomic<size_t> next{0};
  OnThreads([&](int) {
    for (size_t i = next++; i < tasks; i = next++) task(order[i]);
  });
}

// Tests that concurrent tasks give the same sums as one thread. The sums depend
// on the order of an id's gradients.
TEST(TableThreadsTest, APushInTasksIsThatOfOneThread) {
  Options options = SharedTable();
  options.shards = 16;
  options.max_rows = 16 * 400;
  const auto table = *Table::Create(options);
  const auto other = *Table::Create(options);
  const auto apply = [](const float* gradient, float* value, float*) {
    for (size_t k = 0; k < kDim; ++k) value[k] = value[k] * 0.9f + gradient[k];
  };
  std::mt19937_64 random(5);
  std::unordered_map<uint64_t, float> model;
  for (int push = 0; push < 20; ++push) {
    Ids ids(5000);
    Floats gradients;
    for (uint64_t& id : ids) {
      id = random() % 3000;
      gradients.resize(gradients.size() + kDim, (random() % 1000) * 1e-3f);
      model[id] = model[id] * 0.9f + gradients.back();
    }
    const absl::Time now = absl::UnixEpoch();
    auto reserved = table->Reserve(ids, now, OnAllThreads);
    ASSERT_TRUE(reserved.ok()) << reserved.status();
    EXPECT_EQ(reserved->rows(), other->Reserve(ids, now)->rows());
    const auto result = table->Push(ids, gradients, now, apply,
                                    *std::move(reserved), OnAllThreads);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->updated, ids.size());
    ASSERT_TRUE(other->Push(ids, gradients, now, apply).ok());
  }
  for (const auto& [id, value] : model) {
    Floats out(kDim);
    ASSERT_TRUE(table->Pull({id}, absl::UnixEpoch(), absl::MakeSpan(out)).ok());
    ASSERT_EQ(out, Floats(kDim, value)) << id;
  }
  EXPECT_EQ(table->counters().rows, model.size());
  EXPECT_EQ(table->counters().created, other->counters().created);
  EXPECT_EQ(table->counters().hits,
            other->counters().hits + model.size());  // the hits of these pulls
  EXPECT_EQ(table->counters().reserved, 0u);
}

TEST(TableThreadsTest, RoomThatIsRefusedInTasksIsGivenBack) {
  Options options = SharedTable();
  options.max_removals = 0;
  options.budget_bytes = size_t{64} << 10;
  const auto table = *Table::Create(options);
  Ids ids(5000);
  std::iota(ids.begin(), ids.end(), 0);
  const auto refused = table->Reserve(ids, absl::UnixEpoch(), OnAllThreads);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(table->counters().reserved, 0u);
  EXPECT_EQ(table->counters().refused, 1u);
}

// Tests all calls at once on a table that evicts for each reason.
TEST(TableThreadsTest, EverythingAtOnceKeepsTheBooksInOrder) {
  Options options = SharedTable();
  options.dim = kDim;
  options.min_count = 2;
  options.candidates = 1024;
  options.time_to_live = absl::Seconds(5);
  options.max_rows = 300;
  options.budget_bytes = size_t{1} << 20;
  options.max_removals = 1024;
  options.above_budget = AboveBudget::kEvict;
  const auto table = *Table::Create(options);
  std::atomic<uint64_t> updated{0};
  std::atomic<uint64_t> not_admitted{0};
  OnThreads([&](int thread) {
    std::mt19937_64 random(thread);
    for (int i = 0; i < kPushes; ++i) {
      const absl::Time now = absl::FromUnixSeconds(i / 10);
      const Ids ids = SomeIds(&random);
      const auto result =
          table->Push(ids, Floats(ids.size() * kDim, 1), now, AddAll);
      ASSERT_TRUE(result.ok()) << result.status();
      ASSERT_EQ(result->dropped, 0u);
      updated += result->updated;
      not_admitted += result->not_admitted;
      switch (random() % 4) {
        case 0: {
          Floats out(ids.size() * kDim);
          ASSERT_TRUE(table->Pull(ids, now, absl::MakeSpan(out)).ok());
          break;
        }
        case 1:
          table->Maintain(now);
          break;
        case 2:
          table->Remove({random() % 500, random() % 500});
          break;
        case 3: {
          auto snapshot = table->BeginSnapshot({});
          RowBlock block;
          while (snapshot.ok() && *(*snapshot)->Next(50, &block)) {
          }
          break;
        }
      }
    }
  });
  const Counters counters = table->counters();
  EXPECT_EQ(counters.not_admitted, not_admitted);
  EXPECT_GT(updated, 0u);
  EXPECT_LE(counters.rows, 300u);
  EXPECT_EQ(counters.created, counters.rows + counters.expired +
                                  counters.over_capacity +
                                  counters.over_budget + counters.removed);
}

// Tests a table at its budget, which refuses pushes. A push that was accepted
// must have been applied completely.
TEST(TableThreadsTest, WhatWasRefusedIsNotThereAndWhatWasTakenIs) {
  Options options = SharedTable();
  options.max_removals = 0;
  options.budget_bytes = size_t{64} << 10;
  const auto table = *Table::Create(options);
  std::atomic<uint64_t> pushed{0};
  std::atomic<int> refused{0};
  OnThreads([&](int thread) {
    std::mt19937_64 random(thread);
    for (int i = 0; i < kPushes; ++i) {
      Ids ids;
      for (int k = 0; k < 20; ++k) {
        ids.push_back((random() % 60) * 20 + k);
      }
      const auto result = table->Push(ids, Floats(ids.size() * kDim, 1),
                                      absl::UnixEpoch(), AddAll);
      if (result.ok()) {
        ASSERT_EQ(result->updated, ids.size());
        pushed += ids.size();
      } else {
        ASSERT_EQ(result.status().code(), absl::StatusCode::kResourceExhausted);
        ++refused;
      }
      // Makes two reservations that are applied as one, later, or never.
      auto first = table->Reserve(ids, absl::UnixEpoch());
      auto second = table->Reserve(ids, absl::UnixEpoch());
      refused += !first.ok() + !second.ok();
      if (!first.ok() || !second.ok() || random() % 3 == 0) continue;
      ASSERT_TRUE(first->Merge(*std::move(second)).ok());
      const auto later =
          table->Push(ids, Floats(ids.size() * kDim, 1), absl::UnixEpoch(),
                      AddAll, *std::move(first));
      ASSERT_TRUE(later.ok()) << later.status();
      ASSERT_EQ(later->updated, ids.size());
      pushed += ids.size();
    }
  });
  EXPECT_GT(refused, 0);
  EXPECT_GT(pushed, 0u);
  EXPECT_LE(table->counters().bytes, options.budget_bytes);
  EXPECT_EQ(table->counters().reserved, 0u);
  auto snapshot = *table->BeginSnapshot({});
  RowBlock block;
  uint64_t updates = 0;
  double sum = 0;
  while (*snapshot->Next(100, &block)) {
    for (const uint32_t count : block.updates) updates += count;
    for (size_t i = 0; i < block.ids.size(); ++i) {
      sum += block.values[i * kDim];
    }
  }
  EXPECT_EQ(updates, pushed);
  EXPECT_EQ(sum, pushed);
}

}  // namespace
}  // namespace penstock::ps::sparse
