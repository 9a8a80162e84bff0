// Tests limits on the memory that peers can make a server hold, and the errors.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "ps/server/server.h"
#include "tests/ps/server/small_server.h"

namespace penstock::ps {
namespace {

using absl::StatusCode;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr View kView = SmallServer::kView;
constexpr WorkerId kChief = {0, 11};

Server::Options ForWorkers(uint32_t workers) {
  Server::Options options;
  options.membership.expected_workers = workers;
  return options;
}

// Tests two threads that push at the same time. If checking and reserving were
// two steps, each push would find room.
TEST(BoundsTest, PushesThatComeTogetherStayWithinTheLimit) {
  constexpr uint32_t kEach = 20;  // ranks per thread
  Server::Options options = ForWorkers(2 * kEach + 1);
  options.max_held_bytes = kEach * (sizeof(uint64_t) + sizeof(float));
  const tensor::Bundle push = {{Ids("e", {1}), Floats("e", {1, 1}, {1})}};
  for (int round = 0; round < 1000; ++round) {
    SmallServer server(options);
    ASSERT_TRUE(server.Define({{SparseTable("e", 1)}}).ok());
    for (uint32_t rank = 0; rank < 2 * kEach; ++rank) {
      ASSERT_TRUE(server->Join(kView, {rank, 1}).ok());
    }
    std::atomic<uint32_t> ready{0};
    std::atomic<uint32_t> taken{0};
    const auto push_all = [&](uint32_t first) {
      for (++ready; ready < 2;) {
      }
      for (uint32_t rank = first; rank < first + kEach; ++rank) {
        taken += server.Push({rank, 1}, 0, push).ok() ? 1 : 0;
      }
    };
    std::thread other(push_all, kEach);
    push_all(0);
    other.join();
    ASSERT_EQ(taken, kEach);
    ASSERT_EQ(server->report().held_bytes, options.max_held_bytes);
  }
}

TEST(BoundsTest, PushThatNeverFitsIsNotToldToComeAgain) {
  Server::Options options;
  options.max_held_bytes = 10;
  SmallServer server(options);
  ASSERT_TRUE(server.Define({{SparseTable("e", 1)}}).ok());
  ASSERT_TRUE(server->Join(kView, kChief).ok());
  const auto refused =
      server.Push(kChief, 0, {{Ids("e", {1}), Floats("e", {1, 1}, {1})}});
  EXPECT_EQ(refused.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.status().message()),
              AllOf(HasSubstr("12 bytes"), HasSubstr("may hold 10")));
  EXPECT_EQ(server->report().held_bytes, 0u);
}

// Tests a checkpoint that waits for the push of worker 1. The server has no
// room for that push, because the push of worker 0 waits for the checkpoint.
TEST(BoundsTest, ACheckpointThatKeepsThePushesBeforeItOutEnds) {
  Server::Options options = ForWorkers(2);
  options.max_held_bytes = sizeof(uint64_t) + sizeof(float);
  SmallServer server(options);
  ASSERT_TRUE(
      server.Define({{SparseTable("e", 1, ConsistencyPolicy::kUnlimited)}})
          .ok());
  for (const uint32_t rank : {0, 1}) {
    ASSERT_TRUE(server->Join(kView, {rank, 1}).ok());
  }
  ASSERT_TRUE(server->HoldSteps(kView).ok());
  const tensor::Bundle push = {{Ids("e", {1}), Floats("e", {1, 1}, {1})}};
  ASSERT_TRUE(server.Push({0, 1}, 0, push).ok());
  CutPoint cut;
  cut.clocks = {{{1, 1}, 1}};
  const auto snapshot =
      server->TakeSnapshot(kView, cut, {}, absl::Minutes(10), [&](uint64_t) {
        const auto refused = server.Push({1, 1}, 0, push);
        EXPECT_EQ(refused.status().code(), StatusCode::kResourceExhausted);
      });
  EXPECT_EQ(snapshot.status().code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(snapshot.status().message()),
              HasSubstr("raise --held-gradients"));
  while (server->report().held_bytes > 0) std::this_thread::yield();
  EXPECT_TRUE(server.Push({1, 1}, 0, push).ok());
}

// Tests a deadlock: one worker waits for another worker's push, and that push
// waits for room.
TEST(BoundsTest, AStepThatDoesNotFitEndsForAllWithTheBytesNeeded) {
  Server::Options options = ForWorkers(2);
  options.max_held_bytes = 100;
  SmallServer server(options);
  ASSERT_TRUE(server.Define({{SparseTable("e", 1)}}).ok());
  ASSERT_TRUE(server->Join(kView, kChief).ok());
  ASSERT_TRUE(server->Join(kView, {1, 1}).ok());
  const tensor::Bundle five = {
      {Ids("e", {1, 2, 3, 4, 5}), Floats("e", {5, 1}, {1, 2, 3, 4, 5})}};
  ASSERT_TRUE(server.Push(kChief, 0, five).ok());
  auto first = server.StartPull(kChief, 1);
  EXPECT_FALSE(first.is_there());
  const auto refused = server.Push({1, 1}, 0, five);
  ASSERT_EQ(refused.status().code(), StatusCode::kAborted) << refused.status();
  EXPECT_THAT(
      std::string(refused.status().message()),
      AllOf(HasSubstr("step 0 waits for worker 1"), HasSubstr("60 bytes"),
            HasSubstr("may hold 100"), HasSubstr("--held-gradients=120")));
  EXPECT_EQ(first.Wait().status().code(), StatusCode::kAborted);
  EXPECT_EQ(server->Heartbeat(kView.run, kChief).code(), StatusCode::kAborted);
  EXPECT_LE(server->report().held_bytes, 100u);
}

// Tests a stranger's push, which must not affect the step.
TEST(BoundsTest, NoStrangerEndsTheTraining) {
  Server::Options options = ForWorkers(2);
  options.max_held_bytes = 20;
  SmallServer server(options);
  ASSERT_TRUE(server.Define({{SparseTable("e", 1)}}).ok());
  ASSERT_TRUE(server->Join(kView, kChief).ok());
  ASSERT_TRUE(server->Join(kView, {1, 1}).ok());
  const tensor::Bundle one = {{Ids("e", {1}), Floats("e", {1, 1}, {1})}};
  ASSERT_TRUE(server.Push(kChief, 0, one).ok());
  const absl::Status stranger = server.Push({1, 99}, 0, one).status();
  EXPECT_FALSE(stranger.ok());
  EXPECT_TRUE(server->Heartbeat(kView.run, kChief).ok());
}

Answer<int> StartToAwaitValues(SmallServer* server, uint64_t* ticket) {
  Answer<int> answer;
  *ticket = (*server)->AwaitValues(
      [done = answer.callback()](const absl::Status& ready) {
        done(ready.ok() ? absl::StatusOr<int>(1) : ready);
      });
  return answer;
}

TEST(BoundsTest, NoMoreMayWaitForValues) {
  Server::Options options;
  options.max_waiting_calls = 2;
  SmallServer server(options);
  uint64_t first = 0;
  uint64_t ticket = 0;
  auto cancelled = StartToAwaitValues(&server, &first);
  auto second = StartToAwaitValues(&server, &ticket);
  EXPECT_EQ(StartToAwaitValues(&server, &ticket).Wait().status().code(),
            StatusCode::kResourceExhausted);
  server->Cancel(first);
  EXPECT_EQ(cancelled.Wait().status().code(), StatusCode::kCancelled);
  auto third = StartToAwaitValues(&server, &ticket);
  ASSERT_TRUE(server.Define({{SparseTable("e", 1)}}).ok());
  EXPECT_TRUE(second.Wait().ok());
  EXPECT_TRUE(third.Wait().ok());
}

TEST(BoundsTest, EachWaitForValuesEndsInItsTime) {
  Server::Options options;
  options.max_wait = absl::Milliseconds(20);
  SmallServer server(options);
  for (int i = 0; i < 3; ++i) {
    uint64_t ticket = 0;
    auto earlier = StartToAwaitValues(&server, &ticket);
    auto later = StartToAwaitValues(&server, &ticket);
    EXPECT_EQ(later.Wait().status().code(), StatusCode::kDeadlineExceeded);
    EXPECT_EQ(earlier.Wait().status().code(), StatusCode::kDeadlineExceeded);
  }
}

// Makes a server with rows "e" wait for a second worker, so that pulls for step
// 1 wait.
void StartToWait(SmallServer* server) {
  ASSERT_TRUE(server->Define({{SparseTable("e", 1)}}).ok());
  ASSERT_TRUE((*server)->Join(kView, kChief).ok());
}

TEST(BoundsTest, NoMorePullsMayWait) {
  Server::Options options = ForWorkers(2);
  options.max_waiting_calls = 2;
  SmallServer server(options);
  StartToWait(&server);
  // Starts a pull of a worker, and a pull of a reader.
  auto first = server.StartPull(kChief, 1);
  auto second = server.StartPull(absl::nullopt, 1);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(server.Pull(absl::nullopt, 1).status().code(),
              StatusCode::kResourceExhausted);
  }
  // Expects that a pull that need not wait is answered.
  EXPECT_TRUE(server.Pull(kChief, 0, {{Ids("e", {1, 2, 3})}}).ok());
  EXPECT_FALSE(first.is_there());
  EXPECT_FALSE(second.is_there());
  server->Lost(kChief);
  EXPECT_FALSE(first.Wait().ok());
  auto third = server.StartPull(absl::nullopt, 1);
  EXPECT_FALSE(third.is_there());
  server->Drain();
  EXPECT_EQ(third.Wait().status().code(), StatusCode::kUnavailable);
}

TEST(BoundsTest, WhatPullsThatWaitHaveAskedForIsBounded) {
  Server::Options options = ForWorkers(2);
  options.max_waiting_bytes = 10000;
  SmallServer server(options);
  StartToWait(&server);
  const tensor::Bundle ids = {{Ids("e", std::vector<int64_t>(700))}};
  for (int i = 0; i < 3; ++i) {
    Server::PullSpec spec;
    spec.clock = 1;
    spec.ids = ids;
    Answer<Server::Pulled> held;
    const uint64_t ticket = server->Pull(kView, spec, held.callback());
    EXPECT_FALSE(held.is_there());
    EXPECT_EQ(server.Pull(kChief, 1, ids).status().code(),
              StatusCode::kResourceExhausted);
    EXPECT_TRUE(server.Pull(kChief, 0, ids).ok());
    server->Cancel(ticket);
    EXPECT_EQ(held.Wait().status().code(), StatusCode::kCancelled);
  }
}

// Tests a worker that pushes only new ids, and is told to retry. Another
// worker, whose ids already have rows, must be able to train.
TEST(BoundsTest, SparseTablesWithoutABudgetAreBoundedTogether) {
  Server::Options options = ForWorkers(1);
  options.tables.max_sparse_bytes = size_t{8} << 20;
  SmallServer server(options);
  TableSpec with_budget = SparseTable("b", 256);
  absl::get<SparseSpec>(with_budget.rows).budget_bytes = size_t{32} << 20;
  ASSERT_TRUE(
      server
          .Define({{SparseTable("a", 256), with_budget, SparseTable("c", 256)}})
          .ok());
  ASSERT_TRUE(server->Join(kView, kChief).ok());
  absl::Status refused;
  uint64_t clock = 0;
  const std::vector<float> ones(100 * 256, 1);
  const auto push = [&](int64_t first) {
    std::vector<int64_t> ids(100);
    for (int64_t i = 0; i < 100; ++i) ids[i] = first + i;
    tensor::Bundle bundle;
    for (const char* table : {"a", "b", "c"}) {
      bundle.tensors.push_back(Ids(table, ids));
      bundle.tensors.push_back(Floats(table, {100, 256}, ones));
    }
    EXPECT_TRUE(server.Pull(kChief, clock).ok());
    const absl::Status status = server.Push(kChief, clock, bundle).status();
    if (status.ok()) ++clock;
    return status;
  };
  int64_t id = 0;
  for (; refused.ok() && id < 100'000; id += 100) refused = push(id);
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted) << refused;
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("tables without a budget_bytes"),
                    HasSubstr("--sparse-memory")));
  EXPECT_GT(id, 1000);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(push(0).ok());
  ASSERT_TRUE(server.Pull(kChief, clock).ok());
  const std::vector<TableReport> tables = server->report().tables;
  EXPECT_LE(tables[0].bytes + tables[2].bytes, size_t{8} << 20);
}

TEST(BoundsTest, AnswersThatNobodyReadsAreBounded) {
  Server::Options options = ForWorkers(1);
  options.tables.max_answer_bytes = 10'000;
  SmallServer server(options);
  ASSERT_TRUE(server.Define({{SparseTable("e", 100)}}).ok());
  const tensor::Bundle ids = {{Ids("e", {1, 2, 3, 4, 5, 6, 7, 8, 9, 10})}};
  std::vector<Server::Pulled> kept;
  absl::Status refused;
  while (refused.ok() && kept.size() < 10) {
    auto pulled = server.Pull(absl::nullopt, 0, ids);
    refused = pulled.status();
    if (pulled.ok()) kept.push_back(*std::move(pulled));
  }
  EXPECT_EQ(kept.size(), 2u);
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted) << refused;
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("take 8000 bytes, and may take 10000"),
                    HasSubstr("--held-answers")));
  // Frees one answer. Only the answers that are held count against the limit,
  // not the refused one.
  kept.pop_back();
  EXPECT_TRUE(server.Pull(absl::nullopt, 0, ids).ok());
  const tensor::Bundle more = {{Ids("e", std::vector<int64_t>(26, 1))}};
  const absl::Status never = server.Pull(absl::nullopt, 0, more).status();
  EXPECT_EQ(never.code(), StatusCode::kInvalidArgument) << never;
}

TEST(BoundsTest, SizeOfAModelDoesNotOverflow) {
  SmallServer server;
  TableSpec table =
      DenseTable("w", {int64_t{1} << 60}, ConsistencyPolicy::kUnlimited,
                 tensor::DType::kF16);
  table.optimizer.rule = optim::Rule::kAdam;
  EXPECT_EQ(server.Define({{table}}).status().code(),
            StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace penstock::ps
