#include "ps/server/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/ps/server/small_server.h"

namespace penstock::ps {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Verdict = Server::PushVerdict;
using absl::StatusCode;

constexpr View kView = SmallServer::kView;
constexpr WorkerId kChief = {0, 11};
constexpr WorkerId kOther = {1, 12};
constexpr int64_t kUnlimited = ConsistencyPolicy::kUnlimited;

Server::Options ForWorkers(uint32_t workers) {
  Server::Options options;
  options.membership.expected_workers = workers;
  return options;
}

// Starts a server with a variable "w" [2], learning rate 1, and rows "e".
void Start(SmallServer* server, int64_t staleness = 0) {
  ASSERT_TRUE(server
                  ->Define({{DenseTable("w", {2}, staleness),
                             SparseTable("e", 2, staleness)}})
                  .ok());
  ASSERT_TRUE((*server)->Join(kView, kChief).ok());
  const auto taken =
      (*server)->Initialize(kView, kChief, {{Floats("w", {2}, {10, 20})}});
  ASSERT_TRUE(taken.ok()) << taken.status();
  ASSERT_TRUE(*taken);
}

TEST(ServerTest, StepIsTheMeanOfAllWorkers) {
  SmallServer server(ForWorkers(2));
  Start(&server);
  ASSERT_TRUE(server->Join(kView, kOther).ok());
  EXPECT_EQ(*server.Push(kChief, 0,
                         {{Floats("w", {2}, {1, 2}), Ids("e", {5, 6, 5}),
                           Floats("e", {3, 2}, {1, 1, 2, 2, 3, 3})}}),
            Verdict::kCounted);
  auto pull = server.StartPull(kChief, 1, {{Ids("e", {6, 5, 4})}});
  EXPECT_FALSE(pull.is_there());
  EXPECT_EQ(*server.Push(kOther, 0,
                         {{Floats("w", {2}, {3, 6}), Ids("e", {6}),
                           Floats("e", {1, 2}, {6, 8})}}),
            Verdict::kCounted);
  const auto pulled = pull.Wait();
  ASSERT_TRUE(pulled.ok()) << pulled.status();
  EXPECT_EQ(pulled->clock, 1u);
  ASSERT_EQ(pulled->bundle.tensors.size(), 2u);
  EXPECT_EQ(pulled->bundle.tensors[0].name, "w");
  EXPECT_THAT(ElementsOf(pulled->bundle.tensors[0].tensor), ElementsAre(8, 16));
  EXPECT_EQ(pulled->bundle.tensors[1].name, "e");
  EXPECT_THAT(ElementsOf(pulled->bundle.tensors[1].tensor),
              ElementsAre(-4, -5, -2, -2, 0, 0));
}

TEST(ServerTest, AsynchronousPushIsAppliedByItself) {
  SmallServer server(ForWorkers(2));
  Start(&server, kUnlimited);
  ASSERT_TRUE(server->Join(kView, kOther).ok());
  for (uint64_t clock = 0; clock < 3; ++clock) {
    ASSERT_EQ(*server.Push(kChief, clock, {{Floats("w", {2}, {1, 0})}}),
              Verdict::kCounted);
  }
  const auto before_chief_is_done = server.Pull(kOther, 0);
  ASSERT_TRUE(before_chief_is_done.ok());
  ASSERT_TRUE(server->TakeSnapshot(kView, {}, {}, absl::Seconds(60)).ok());
  // Pushes once more. A worker's push is applied before its next push is taken.
  ASSERT_EQ(*server.Push(kChief, 3, {}), Verdict::kCounted);
  EXPECT_THAT(ElementsOf(server.Pull(kOther, 0)->bundle.tensors[0].tensor),
              ElementsAre(7, 20));
}

TEST(ServerTest, RepeatedPushCountsOnce) {
  SmallServer server;
  Start(&server);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(*server.Push(kChief, 0, {{Floats("w", {2}, {1, 1})}}),
              i == 0 ? Verdict::kCounted : Verdict::kDuplicate);
    EXPECT_THAT(ElementsOf(server.Pull(kChief, 1)->bundle.tensors[0].tensor),
                ElementsAre(9, 19));
  }
  EXPECT_EQ(server->report().pushes.counted, 1u);
  EXPECT_EQ(server->report().pushes.not_counted, 2u);
}

// Tests a worker whose connection breaks before or after its push has counted.
// The worker learns which when it returns.
TEST(ServerTest, WorkerThatWasAwayLearnsWhetherItsPushHasCounted) {
  SmallServer server(ForWorkers(2));
  Start(&server);
  ASSERT_TRUE(server->Join(kView, kOther).ok());
  ASSERT_EQ(*server.Push(kOther, 0, {{Floats("w", {2}, {1, 1})}}),
            Verdict::kCounted);
  server->Lost(kOther);
  ASSERT_EQ(*server.Push(kChief, 0, {{Floats("w", {2}, {1, 1})}}),
            Verdict::kCounted);
  ASSERT_TRUE(server.Pull(kChief, 1).ok());
  // Pushes step 1, at which the server does not wait for the lost worker.
  ASSERT_EQ(*server.Push(kChief, 1, {}), Verdict::kCounted);
  ASSERT_TRUE(server.Pull(kChief, 2).ok());
  ASSERT_EQ(server->Join(kView, kOther)->clock, 2u);
  EXPECT_EQ(*server.Push(kOther, 0, {{Floats("w", {2}, {1, 1})}}),
            Verdict::kDuplicate);
  EXPECT_EQ(*server.Push(kOther, 1, {{Floats("w", {2}, {1, 1})}}),
            Verdict::kLate);
  EXPECT_THAT(ElementsOf(server.Pull(kChief, 2)->bundle.tensors[0].tensor),
              ElementsAre(9, 19));
}

TEST(ServerTest, WhatIsNoGradientIsRefusedByNameWorkerAndStep) {
  SmallServer server;
  Start(&server);
  const float kNan = std::nanf("");
  struct Case {
    tensor::Bundle push;
    std::string says;
  };
  const std::vector<Case> cases = {
      {{{Floats("w", {2}, {1, kNan})}},
       "variable w: element 1 is nan; clip the gradients"},
      {{{Floats("w", {1}, {1})}}, "f32[1]"},
      {{{Ids("w", {1, 2})}}, "i"},
      {{{Floats("v", {1}, {1})}}, "table v"},
      {{{Floats("w", {2}, {1, 1}), Ids("e", {}), Floats("e", {0, 2}, {}),
         Floats("w", {2}, {1, 1})}},
       "twice"},
      {{{Ids("e", {1})}}, "1 tensors"},
      {{{Ids("e", {1}), Floats("e", {1, 3}, {1, 2, 3})}}, "f32[1,3]"},
      {{{Ids("e", {1}), Floats("e", {2}, {1, 2})}}, "f32[2]"},
      {{{Floats("e", {1}, {1}), Floats("e", {1, 2}, {1, 2})}}, "int64 [n]"},
      {{{Ids("e", {1}), Floats("e", {1, 2}, {1, INFINITY})}}, "element 1"},
      {{{Ids("e", {1, 1}), Floats("e", {2, 2}, {1, 1e18F, 1, 1e18F})}},
       "ids that repeat, element 1"},
  };
  for (const Case& each : cases) {
    const auto refused = server.Push(kChief, 0, each.push);
    ASSERT_FALSE(refused.ok()) << each.says;
    EXPECT_TRUE(absl::IsInvalidArgument(refused.status()) ||
                absl::IsNotFound(refused.status()))
        << refused.status();
    EXPECT_THAT(std::string(refused.status().message()),
                AllOf(HasSubstr("worker 0"), HasSubstr("step 0"),
                      HasSubstr(each.says)));
    EXPECT_EQ(server.log().back(), refused.status().message());
  }
  EXPECT_EQ(server->report().pushes.refused, cases.size());
  // Pushes correctly. No refused push may have changed anything.
  EXPECT_EQ(*server.Push(kChief, 0, {{Floats("w", {2}, {1, 1})}}),
            Verdict::kCounted);
  EXPECT_THAT(ElementsOf(server.Pull(kChief, 1)->bundle.tensors[0].tensor),
              ElementsAre(9, 19));
}

TEST(ServerTest, ServerWithoutModelSaysAtOnceThatTheRunIsLost) {
  SmallServer server;
  EXPECT_EQ(server.Pull(kChief, 3).status().code(), StatusCode::kDataLoss);
  EXPECT_EQ(server.Push(kChief, 3, {}).status().code(), StatusCode::kDataLoss);
  EXPECT_EQ(server->Join(kView, kChief).status().code(), StatusCode::kDataLoss);
  EXPECT_EQ(server->Heartbeat(kView.run, kChief).code(), StatusCode::kDataLoss);
  EXPECT_THAT(std::string(server.Pull(kChief, 3).status().message()),
              AllOf(HasSubstr("was restarted"), HasSubstr("checkpoint")));
}

TEST(ServerTest, AnotherRunAndAnotherEpochAreRefused) {
  SmallServer server;
  Start(&server);
  EXPECT_EQ(server->Join({8, 1}, kChief).status().code(), StatusCode::kAborted);
  const auto stale = server->Join({7, 2}, kChief);
  EXPECT_EQ(stale.status().code(), StatusCode::kFailedPrecondition);
}

TEST(ServerTest, ChiefThatComesAgainFindsItsRun) {
  SmallServer server;
  const Model model = {{DenseTable("w", {2})}};
  auto defined = server.Define(model);
  ASSERT_TRUE(defined.ok());
  EXPECT_TRUE(defined->taken);
  EXPECT_TRUE(defined->wants_values);
  Server::Definition again = SmallServer::Definition(model);
  again.run = 99;
  defined = server->Define(again);
  ASSERT_TRUE(defined.ok()) << defined.status();
  EXPECT_FALSE(defined->taken);
  EXPECT_EQ(defined->run, kView.run);

  again.model.tables[0].staleness = 3;
  EXPECT_THAT(std::string(server->Define(again).status().message()),
              AllOf(HasSubstr("another model"), HasSubstr("w")));
  again = SmallServer::Definition(model);
  again.servers.push_back("ps1:2222");
  EXPECT_THAT(std::string(server->Define(again).status().message()),
              HasSubstr("ps0:2222"));
}

TEST(ServerTest, ModelThatCannotBeIsRefused) {
  SmallServer server;
  EXPECT_EQ(server.Define({{DenseTable("w", {-1})}}).status().code(),
            StatusCode::kInvalidArgument);
  Server::Definition definition = SmallServer::Definition({});
  definition.server = 1;
  EXPECT_EQ(server->Define(definition).status().code(),
            StatusCode::kInvalidArgument);
  definition = SmallServer::Definition({});
  definition.run = 0;
  EXPECT_EQ(server->Define(definition).status().code(),
            StatusCode::kInvalidArgument);
  TableSpec wide = SparseTable("wide", 1 << 20);
  wide.optimizer.rule = optim::Rule::kAdam;
  EXPECT_THAT(std::string(server.Define({{wide}}).status().message()),
              AllOf(HasSubstr("wide"), HasSubstr("8 MiB")))
      << "there would be no checkpoint of it";
}

TEST(ServerTest, ModelThatDoesNotFitNamesTheLimit) {
  Server::Options options = ForWorkers(4);
  options.tables.max_dense_bytes = 1000;
  SmallServer small(options);
  EXPECT_THAT(
      std::string(small.Define({{DenseTable("w", {200})}}).status().message()),
      HasSubstr("1600 bytes"));
  options = ForWorkers(4);
  options.max_held_bytes = 1000;
  SmallServer narrow(options);
  EXPECT_THAT(
      std::string(narrow.Define({{DenseTable("w", {200})}}).status().message()),
      AllOf(HasSubstr("4 workers"), HasSubstr("800 bytes")));
}

TEST(ServerTest, FirstValueThatIsNotFiniteIsRefusedByName) {
  for (const float bad : {std::nanf(""), INFINITY, -INFINITY}) {
    SmallServer server;
    ASSERT_TRUE(server.Define({{DenseTable("bad", {3})}}).ok());
    const auto refused =
        server->Initialize(kView, kChief, {{Floats("bad", {3}, {1, 2, bad})}});
    EXPECT_EQ(refused.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(refused.status().message()),
                AllOf(HasSubstr("worker 0"), HasSubstr("variable bad"),
                      HasSubstr("element 2")));
    EXPECT_THAT(server.log(),
                ElementsAre(std::string(refused.status().message())));
    EXPECT_FALSE(server->has_values());
    EXPECT_TRUE(
        server->Initialize(kView, kChief, {{Floats("bad", {3}, {1, 2, 3})}})
            .ok());
    EXPECT_TRUE(server->has_values());
  }
}

TEST(ServerTest, OnlyTheChiefInitializes) {
  SmallServer server;
  ASSERT_TRUE(server.Define({{DenseTable("w", {1})}}).ok());
  EXPECT_EQ(server->Initialize(kView, kOther, {{Floats("w", {1}, {1})}})
                .status()
                .code(),
            StatusCode::kFailedPrecondition);
}

TEST(ServerTest, NameThatAWorkerHasChosenForgesNoLogLine) {
  SmallServer server;
  ASSERT_TRUE(server.Define({{DenseTable("w\n\x1b[2J", {1})}}).ok());
  ASSERT_FALSE(
      server
          ->Initialize(kView, kChief, {{Floats("w\n\x1b[2J", {1}, {INFINITY})}})
          .ok());
  ASSERT_EQ(server.log().size(), 1u);
  EXPECT_THAT(server.log()[0], HasSubstr(R"(variable w\x0a\x1b[2J)"));
}

TEST(ServerTest, ValuesDoNotKeepTheMessageThatTheyCameIn) {
  SmallServer server;
  ASSERT_TRUE(server.Define({{DenseTable("w", {2})}}).ok());
  tensor::NamedTensor value = Floats("w", {2}, {1, 2});
  const std::weak_ptr<tensor::Buffer> memory = value.tensor.buffer();
  ASSERT_TRUE(server->Initialize(kView, kChief, {{std::move(value)}}).ok());
  EXPECT_TRUE(memory.expired());
}

TEST(ServerTest, WaitForValuesEndsWithThem) {
  SmallServer server;
  Answer<int> early;
  server->AwaitValues([done = early.callback()](const absl::Status& ready) {
    done(ready.ok() ? absl::StatusOr<int>(1) : ready);
  });
  EXPECT_FALSE(early.is_there());
  Start(&server);
  EXPECT_TRUE(early.Wait().ok());
}

TEST(ServerTest, WhoIsRefusedIsNamed) {
  SmallServer server;
  Start(&server);
  EXPECT_THAT(std::string(server.Pull(kOther, 0).status().message()),
              HasSubstr("pull of worker 1"));
  EXPECT_THAT(std::string(server.Push(kOther, 0, {}).status().message()),
              HasSubstr("push for step 0 of worker 1"));
}

TEST(ServerTest, DrainAnswersAllThatWaits) {
  SmallServer server(ForWorkers(2));
  Start(&server);
  auto pull = server.StartPull(kChief, 1);
  server->Drain();
  EXPECT_EQ(pull.Wait().status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(server.Push(kChief, 0, {}).status().code(),
            StatusCode::kUnavailable);
}

TEST(ServerTest, CancelledPullIsAnsweredOnce) {
  SmallServer server(ForWorkers(2));
  Start(&server);
  Server::PullSpec spec;
  spec.worker = kChief;
  spec.clock = 1;
  Answer<Server::Pulled> answer;
  const uint64_t ticket = server->Pull(kView, spec, answer.callback());
  server->Cancel(ticket);
  EXPECT_EQ(answer.Wait().status().code(), StatusCode::kCancelled);
  server->Cancel(ticket);
}

TEST(ServerTest, WaitThatTakesTooLongSaysForWhom) {
  Server::Options options;
  options.max_wait = absl::Milliseconds(50);
  SmallServer server(options);
  Start(&server);
  ASSERT_TRUE(server->Join(kView, kOther).ok());
  ASSERT_TRUE(server.Push(kChief, 0, {}).ok());
  // Pulls step 1, from which on the server waits for kOther.
  ASSERT_TRUE(server.Pull(kChief, 1).ok());
  ASSERT_TRUE(server.Push(kChief, 1, {}).ok());
  const auto late = server.Pull(kChief, 2);
  EXPECT_EQ(late.status().code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(late.status().message()), HasSubstr("worker 1"));
}

// Tests a wait that alone must wake the server's thread: there are no rows.
TEST(ServerTest, WaitEndsInTimeWhenNothingElseIsDueForLong) {
  Server::Options options = ForWorkers(2);
  options.membership.lease = options.membership.assemble_timeout =
      absl::Hours(1);
  options.max_wait = absl::Milliseconds(1);
  SmallServer server(options);
  ASSERT_TRUE(server.Define({{DenseTable("w", {1})}}).ok());
  ASSERT_TRUE(server->Join(kView, kChief).ok());
  ASSERT_TRUE(*server->Initialize(kView, kChief, {{Floats("w", {1}, {10})}}));
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(server.Pull(kChief, 1).status().code(),
              StatusCode::kDeadlineExceeded);
  }
}

TEST(ServerTest, PullInHalfPrecisionIsRounded) {
  SmallServer server;
  Start(&server);
  Server::PullSpec spec;
  spec.all_parts = true;
  spec.dtype = tensor::DType::kBF16;
  Answer<Server::Pulled> answer;
  server->Pull(kView, spec, answer.callback());
  const auto pulled = answer.Wait();
  ASSERT_TRUE(pulled.ok()) << pulled.status();
  const tensor::Tensor& value = pulled->bundle.tensors[0].tensor;
  ASSERT_EQ(value.dtype(), tensor::DType::kBF16);
  const auto* const bits =
      reinterpret_cast<const uint16_t*>(value.bytes().data());
  EXPECT_EQ(bits[0], 0x4120);  // 10
  EXPECT_EQ(bits[1], 0x41a0);  // 20
}

TEST(ServerTest, SmallVariablesTravelAsOne) {
  SmallServer server;
  const Model model = {{DenseTable("a", {2}), DenseTable("b", {}),
                        DenseTable("large", {100, 100}),
                        DenseTable("other", {1}, kUnlimited)}};
  ASSERT_TRUE(server.Define(model).ok());
  const auto& parts = server->training()->tables->parts();
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[0].name, "large");
  EXPECT_EQ(parts[1].name, "pack 0");
  EXPECT_THAT(parts[1].shape, ElementsAre(3));
  EXPECT_EQ(parts[2].name, "other");
}

}  // namespace
}  // namespace penstock::ps
