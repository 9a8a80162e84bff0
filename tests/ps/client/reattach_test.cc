// Tests servers of this process that are restarted while workers train.

#include "ps/client/reattach.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ps/wire/ps.grpc.pb.h"
#include "tests/ps/client/restartable.h"

namespace penstock::ps {
namespace {

using ::testing::HasSubstr;

INSTANTIATE_TEST_SUITE_P(, ReattachTest,
                         testing::Values(0, ConsistencyPolicy::kUnlimited),
                         [](const auto& info) {
                           return info.param == 0 ? "Synchronous"
                                                  : "Asynchronous";
                         });

TEST_P(ReattachTest, TrainingGoesOnAtTheCutWhicheverServersAreRestarted) {
  const std::vector<std::vector<size_t>> kRestarted = {{0}, {1}, {0, 1}};
  for (const std::vector<size_t>& restarted : kRestarted) {
    Reset();
    StartNodes();
    ASSERT_NO_FATAL_FAILURE(AddWorker());
    ASSERT_NO_FATAL_FAILURE(TakeSteps(0, 2));
    Checkpoint();
    ASSERT_NO_FATAL_FAILURE(TakeSteps(2, 5));
    for (const size_t at : restarted) StartNode(at);
    const WorkerPtr old = std::move(workers_[0]);
    auto again = Reattach(old->options(), old->Pull(5).status());
    ASSERT_TRUE(again.ok()) << again.status();
    workers_[0] = *std::move(again);
    EXPECT_EQ(workers_[0]->clock(), 2u);
    EXPECT_TRUE(absl::IsAborted(Push(old.get(), 5)));
    const auto restarts = Train(&workers_[0], 2, 8);
    ASSERT_TRUE(restarts.ok()) << restarts.status();
    EXPECT_THAT(*restarts, testing::IsEmpty());
    ExpectPushes(8);
  }
}

// Tests an old and a new worker of the same rank and the same incarnation.
TEST_P(ReattachTest, EndOfTheOldWorkerDoesNotEndTheNewOne) {
  StartNodes();
  ASSERT_NO_FATAL_FAILURE(AddWorker());
  ASSERT_NO_FATAL_FAILURE(TakeSteps(0, 2));
  Checkpoint();
  for (const bool leaves : {true, false}) {
    StartNode(1);
    WorkerPtr old = std::move(workers_[0]);
    auto again = Reattach(old->options(), old->Pull(2).status());
    ASSERT_TRUE(again.ok()) << again.status();
    workers_[0] = *std::move(again);
    if (leaves) old->Leave();
    old = nullptr;
    for (const auto& node : nodes_) {
      EXPECT_EQ(node->core().report().live_workers, 1u);
      EXPECT_EQ(node->core().report().workers_lost, 0u);
    }
    ASSERT_NO_FATAL_FAILURE(TakeSteps(2, 3));
  }
}

// Tests checkpoints after a restart. The restart has removed the tables of the
// old run, and the record of their changes since the last checkpoint.
TEST_P(ReattachTest, CheckpointsOfTheNewRunHaveNoBaseOfTheOldOne) {
  StartNodes();
  ASSERT_NO_FATAL_FAILURE(AddWorker());
  ASSERT_NO_FATAL_FAILURE(TakeSteps(0, 2));
  Checkpoint();
  ASSERT_NO_FATAL_FAILURE(TakeSteps(2, 4));
  StartNode(1);
  ASSERT_TRUE(Train(&workers_[0], 4, 6).ok());
  EXPECT_FALSE(Checkpoint(/*incremental=*/true).is_incremental);
  ASSERT_NO_FATAL_FAILURE(TakeSteps(6, 7));
  EXPECT_TRUE(Checkpoint(/*incremental=*/true).is_incremental);
  ASSERT_NO_FATAL_FAILURE(TakeSteps(7, 9));
  StartNode(0);
  const auto restarts = Train(&workers_[0], 9, 10);
  ASSERT_TRUE(restarts.ok()) << restarts.status();
  EXPECT_EQ(*restarts, std::vector<uint64_t>{7});
  ExpectPushes(10);
}

// Worker 1 makes no call while the servers are restarted twice. A checkpoint is
// taken between the restarts.
TEST_P(ReattachTest, WorkerThatMissedTwoRestartsGoesOn) {
  for (const bool is_first_to_return : {false, true}) {
    Reset();
    StartNodes();
    ASSERT_NO_FATAL_FAILURE(AddWorker());
    ASSERT_NO_FATAL_FAILURE(AddWorker());
    const Worker::Options before = workers_[1]->options();
    workers_[1]->Leave();
    workers_.pop_back();
    ASSERT_NO_FATAL_FAILURE(TakeSteps(0, 2));
    Checkpoint();
    StartNode(1);
    ASSERT_TRUE(Train(&workers_[0], 2, 5).ok());
    Checkpoint();
    StartNodes();
    if (!is_first_to_return) {
      ASSERT_TRUE(Train(&workers_[0], 5, 6).ok());
    }
    const auto again = Reattach(before, absl::DataLossError("a restart"));
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_GE((*again)->clock(), 5u);
    workers_[0] = nullptr;
  }
}

// Ends the run of worker 1 before its first checkpoint.
TEST_P(ReattachTest, WorkerWhoseRunWroteNoCheckpointMayMissRestarts) {
  StartNodes();
  ASSERT_NO_FATAL_FAILURE(AddWorker());
  ASSERT_NO_FATAL_FAILURE(TakeSteps(0, 2));
  Checkpoint();
  workers_.clear();
  StartNodes();
  ASSERT_NO_FATAL_FAILURE(AddWorker());
  ASSERT_NO_FATAL_FAILURE(AddWorker());
  const Worker::Options before = workers_[1]->options();
  workers_[1]->Leave();
  workers_.pop_back();
  StartNode(1);
  ASSERT_TRUE(Train(&workers_[0], 2, 5).ok());
  Checkpoint();
  StartNodes();
  ASSERT_TRUE(Train(&workers_[0], 5, 6).ok());
  const auto again = Reattach(before, absl::DataLossError("a restart"));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_GE((*again)->clock(), 5u);
}

TEST_P(ReattachTest, WorkersThatComeAtTheSameTimeAreOfOneRun) {
  workers_expected_ = 3;
  StartNodes();
  for (int i = 0; i < 3; ++i) ASSERT_NO_FATAL_FAILURE(AddWorker());
  std::vector<std::thread> threads;
  const auto train = [&](uint64_t from, uint64_t end, bool restarted) {
    for (WorkerPtr& worker : workers_) {
      threads.emplace_back([&worker, from, end, restarted] {
        const auto restarts = Train(&worker, from, end);
        EXPECT_TRUE(restarts.ok()) << restarts.status();
        EXPECT_EQ(restarts.ok() && !restarts->empty(), restarted);
      });
    }
    for (std::thread& each : threads) each.join();
    threads.clear();
  };
  train(0, 3, false);
  Checkpoint();
  StartNode(1);
  train(3, 6, true);
  EXPECT_EQ(workers_[1]->connection().run(), workers_[0]->connection().run());
  EXPECT_EQ(workers_[2]->connection().run(), workers_[0]->connection().run());
}

// Tests a new chief, because the old chief may have ended. Each worker knows
// the model.
TEST_P(ReattachTest, NewChiefRestoresServersThatKeptRunning) {
  StartNodes();
  ASSERT_NO_FATAL_FAILURE(AddWorker());
  ASSERT_NO_FATAL_FAILURE(TakeSteps(0, 2));
  Checkpoint();
  ASSERT_NO_FATAL_FAILURE(TakeSteps(2, 4));
  workers_.clear();
  StartNode(1);
  ASSERT_NO_FATAL_FAILURE(AddWorker());
  EXPECT_EQ(workers_[0]->clock(), 2u);
  ASSERT_NO_FATAL_FAILURE(TakeSteps(2, 4));
  ExpectPushes(4);
}

// Tests a restore after an earlier client, which had defined one of the
// servers, has died.
TEST_P(ReattachTest, RestoreOfSomeServersIsCompleted) {
  for (const size_t first : {0, 1}) {
    Reset();
    StartNodes();
    ASSERT_NO_FATAL_FAILURE(AddWorker());
    ASSERT_NO_FATAL_FAILURE(TakeSteps(0, 2));
    Checkpoint();
    ASSERT_NO_FATAL_FAILURE(TakeSteps(2, 4));
    StartNode(1);
    const uint64_t lost = workers_[0]->connection().run();
    const auto choice = nodes_[0]->core().ChooseCut(77, lost);
    ASSERT_TRUE(choice.ok()) << choice.status();
    Server::Definition half;
    half.model = ModelWith(GetParam());
    half.servers = {nodes_[0]->address(), nodes_[1]->address()};
    half.server = static_cast<uint32_t>(first);
    half.run = choice->run;
    half.cut = choice->cut;
    half.replaces = lost;
    half.abandons = true;
    const auto defined = nodes_[first]->core().Define(half);
    ASSERT_TRUE(defined.ok()) << defined.status();
    EXPECT_TRUE(defined->taken);
    const auto restarts = Train(&workers_[0], 4, 6);
    ASSERT_TRUE(restarts.ok()) << restarts.status();
    EXPECT_EQ(workers_[0]->connection().run(), 77u);
    ExpectPushes(6);
  }
}

TEST_P(ReattachTest, WithoutACheckpointValuesThatAreLeftAreKept) {
  StartNodes();
  ASSERT_NO_FATAL_FAILURE(AddWorker());
  ASSERT_NO_FATAL_FAILURE(TakeSteps(0, 2));
  for (const size_t restarted : {1, 0}) {
    const uint64_t run = nodes_[0]->core().training()->run;
    StartNode(restarted);
    const auto again = Reattach(workers_[0]->options(), FailedCall());
    EXPECT_TRUE(absl::IsDataLoss(again.status())) << again.status();
    EXPECT_THAT(std::string(again.status().message()),
                HasSubstr(absl::StrCat("server ", restarted)));
    EXPECT_THAT(std::string(again.status().message()),
                HasSubstr("start all servers and"));
    if (restarted == 1) {
      EXPECT_EQ(nodes_[0]->core().training()->run, run);
    }
  }
}

TEST_P(ReattachTest, ServerThatIsNotToRestoreIsNamedAndKeepsItsValues) {
  for (const size_t without : {0, 1}) {
    Reset();
    StartNode(0, /*restore=*/without != 0);
    StartNode(1, /*restore=*/without != 1);
    ASSERT_NO_FATAL_FAILURE(AddWorker());
    ASSERT_NO_FATAL_FAILURE(TakeSteps(0, 2));
    Checkpoint();
    const auto before = nodes_[without]->core().training();
    StartNode(1 - without);
    const absl::Status status =
        Reattach(workers_[0]->options(), FailedCall()).status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(absl::StrCat("server ", without, " (")));
    EXPECT_THAT(std::string(status.message()), HasSubstr("without --restore"));
    EXPECT_EQ(nodes_[without]->core().training(), before);
  }
}

// Tests a server that is restarted with the folder of another training of the
// same model.
TEST_P(ReattachTest, CheckpointOfAnotherTrainingIsRefused) {
  for (const size_t at : {0, 1}) StartNode(at, true, &others_);
  ASSERT_NO_FATAL_FAILURE(AddWorker());
  ASSERT_NO_FATAL_FAILURE(TakeSteps(0, 9));
  Checkpoint();
  Reset();
  StartNodes();
  ASSERT_NO_FATAL_FAILURE(AddWorker());
  ASSERT_NO_FATAL_FAILURE(TakeSteps(0, 2));
  Checkpoint();
  const auto before = nodes_[1]->core().training();
  StartNode(0, true, &others_);
  const absl::Status status =
      Reattach(workers_[0]->options(), FailedCall()).status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("another training"));
  EXPECT_EQ(nodes_[1]->core().training(), before);
}

TEST_P(ReattachTest, WorkerOfAnotherTrainingDoesNotJoinTheNewOne) {
  StartNodes();
  ASSERT_NO_FATAL_FAILURE(AddWorker());
  ASSERT_NO_FATAL_FAILURE(TakeSteps(0, 1));
  StartNodes();
  const auto defined = Define(DefinitionOf());  // a new training
  ASSERT_TRUE(defined.ok()) << defined.status();
  const absl::Status error = workers_[0]->Pull(1).status();
  EXPECT_TRUE(absl::IsAborted(error)) << error;
  const absl::Status status = Reattach(workers_[0]->options(), error).status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("start this process"));
}

TEST_P(ReattachTest, ErrorsOfOtherCausesStay) {
  StartNodes();
  ASSERT_NO_FATAL_FAILURE(AddWorker());
  Worker::Options options = workers_[0]->options();
  options.incarnation = 0;
  const auto successor = Worker::Join(options);
  ASSERT_TRUE(successor.ok()) << successor.status();
  const absl::Status superseded = workers_[0]->Pull(0).status();
  EXPECT_TRUE(absl::IsAborted(superseded)) << superseded;
  EXPECT_EQ(Reattach(workers_[0]->options(), superseded).status(), superseded);
  const absl::Status other = absl::InvalidArgumentError("a NaN");
  EXPECT_EQ(Reattach(workers_[0]->options(), other).status(), other);
}

// Tests a worker whose successor has joined the new run.
TEST_P(ReattachTest, WorkerThatWasSupersededDoesNotComeBack) {
  StartNodes();
  ASSERT_NO_FATAL_FAILURE(AddWorker());
  ASSERT_NO_FATAL_FAILURE(TakeSteps(0, 2));
  Checkpoint();
  StartNode(1);
  const absl::Status error = FailedCall();
  const WorkerPtr old = std::move(workers_[0]);
  workers_.clear();
  ASSERT_NO_FATAL_FAILURE(AddWorker());
  const absl::Status status = Reattach(old->options(), error).status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("must stop"));
  ASSERT_NO_FATAL_FAILURE(TakeSteps(2, 4));
  ExpectPushes(4);
}

// Tests a server that has lost its values after the client asked for them.
TEST_P(ReattachTest, DefineForAnEarlierProcessOfAServerIsRefused) {
  StartNodes();
  const uint64_t earlier = nodes_[1]->core().instance();
  StartNode(1);
  Server::Definition definition;
  definition.model = ModelWith(GetParam());
  definition.servers = {nodes_[0]->address(), nodes_[1]->address()};
  definition.server = 1;
  definition.run = 77;
  definition.instance = earlier;
  EXPECT_TRUE(absl::IsAborted(nodes_[1]->core().Define(definition).status()));
  definition.instance = nodes_[1]->core().instance();
  EXPECT_TRUE(nodes_[1]->core().Define(definition).ok());
}

// Tests that a client notices that a server was restarted, although the server
// has a model.
TEST_P(ReattachTest, AServerWithAModelTellsItsInstance) {
  StartNodes();
  ASSERT_NO_FATAL_FAILURE(AddWorker());
  ASSERT_NO_FATAL_FAILURE(TakeSteps(0, 1));
  const auto stub = v1::ParameterServer::NewStub(grpc::CreateChannel(
      nodes_[1]->address(), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  v1::GetModelReply reply;
  const grpc::Status status = stub->GetModel(&context, {}, &reply);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_TRUE(reply.has_begun());
  EXPECT_EQ(reply.instance(), nodes_[1]->core().instance());
}

}  // namespace
}  // namespace penstock::ps
