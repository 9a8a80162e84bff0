// Tests that a checkpoint belongs to one run and one cut, and that a training
// continues from this cut.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "ps/checkpoint/manifest.h"
#include "ps/server/checkpoint_restore.h"
#include "ps/server/checkpoint_writer.h"
#include "tests/ps/server/checkpoint_fixture.h"
#include "tests/ps/server/small_server.h"
#include "tests/ps/server/small_training.h"

namespace penstock::ps {
namespace {

using ::testing::ElementsAre;

// Returns the request of a client for a checkpoint of one server.
CheckpointRequest RequestTo(SmallServer* server) {
  CheckpointRequest request = {SmallServer::kView};
  for (const WorkerReport& each : (*server)->report().workers) {
    request.clocks.push_back({each.rank, 0, each.pushed});
  }
  return request;
}

// Tests that a new checkpoint is allowed as soon as any server has counted a
// push.
TEST_F(CheckpointTest, PushAtAnyServerMakesANewOne) {
  SmallTraining training(SmallModel(), &files_, Of(1));
  Start(&training);
  Step(&training);
  ASSERT_TRUE(training.Checkpoint().ok());
  CheckpointWriter& writer = training.writer(0);
  const CheckpointWriter::Clocks same = {{0, 0, 1}};
  EXPECT_TRUE(absl::IsAlreadyExists(
      writer.Begin({training.view(), false, 0, same}).status()));
  const CheckpointWriter::Clocks higher = {{0, 0, 2}};
  EXPECT_TRUE(writer.Begin({training.view(), false, 0, higher}).ok());
}

// Tests a step that the server applies after the answer to the push. The
// checkpoint's step must include the push, because the worker continues from
// this step.
TEST_F(CheckpointTest, AStepThatIsBeingAppliedCounts) {
  SmallTraining training({{DenseTable("w", {4})}}, &files_, Of(1));
  Start(&training);
  TableValues ones;
  ones.dense["w"] = {1, 1, 1, 1};
  ASSERT_TRUE(training.Push(0, ones).ok());
  ASSERT_TRUE(training.Settle().ok());
  ASSERT_TRUE(training.Push(0, ones, /*will_help=*/true).ok());
  const auto attempt = training.BeginAttempt();
  ASSERT_TRUE(attempt.ok()) << attempt.status();
  EXPECT_EQ(attempt->step, 2u);
}

TEST_F(CheckpointTest, ManifestNamesRunServersAndCut) {
  SmallTraining training(SmallModel(), &files_, Of(2));
  Start(&training);
  for (int i = 0; i < 3; ++i) Step(&training);
  ASSERT_TRUE(training.Checkpoint().ok());
  const auto manifest = checkpoint::ReadManifest(&files_, 3);
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_EQ(manifest->run, training.view().run);
  EXPECT_THAT(manifest->servers, ElementsAre("ps0:2222", "ps1:2222"));
  EXPECT_EQ(manifest->cut.version, 3u);
  EXPECT_EQ(manifest->cut.floor, 3u);
  ASSERT_EQ(manifest->cut.clocks.size(), 1u);
  EXPECT_EQ(manifest->cut.clocks[0].clock, 3u);
}

// Tests calls that were waiting while another run replaced their run.
TEST_F(CheckpointTest, CallsOfAnEarlierRunChangeNothing) {
  SmallTraining training(SmallModel(), &files_, Of(1));
  Start(&training);
  Server& server = training.server(0);
  CheckpointWriter& writer = training.writer(0);
  const auto attempt = training.BeginAttempt();
  ASSERT_TRUE(attempt.ok()) << attempt.status();
  const auto shards = training.WriteShards(*attempt);
  ASSERT_TRUE(shards.ok()) << shards.status();
  Server::Definition definition = SmallServer::Definition(SmallModel());
  definition.replaces = training.view().run;
  definition.run = training.view().run + 1;
  const View next = {definition.run, 1};
  ASSERT_TRUE(server.Define(definition)->taken);
  ASSERT_TRUE(server.Join(next, {0, 1}).ok());
  tensor::Bundle values;
  for (const Part& part : server.training()->tables->parts()) {
    values.tensors.push_back(
        Floats(part.name, part.shape, std::vector<float>(ElementsOf(part))));
  }
  ASSERT_TRUE(*server.Initialize(next, {0, 1}, values));
  const auto before = files_.Contents();
  for (const absl::Status& status :
       {writer.Begin({training.view()}).status(),
        writer.Write(*attempt, {}).status(),
        writer.Commit(*attempt, *shards).status()}) {
    EXPECT_TRUE(absl::IsAborted(status)) << status;
  }
  EXPECT_TRUE(files_.Contents() == before);
  ASSERT_TRUE(server.HoldSteps(next).ok());
  EXPECT_TRUE(writer.Begin({next}).ok());
}

// Tests a server that is shut down between the last shard and the commit.
TEST_F(CheckpointTest, CheckpointWithAllShardsIsCommittedDuringADrain) {
  SmallTraining training(SmallModel(), &files_, Of(2));
  Start(&training);
  Step(&training);
  const auto attempt = training.BeginAttempt();
  ASSERT_TRUE(attempt.ok()) << attempt.status();
  const auto shards = training.WriteShards(*attempt);
  ASSERT_TRUE(shards.ok()) << shards.status();
  const TrainingState state = training.State();
  training.server(0).Drain();
  const auto committed = training.writer(0).Commit(*attempt, *shards);
  ASSERT_TRUE(committed.ok()) << committed.status();
  EXPECT_TRUE(Restored(1) == state);
  EXPECT_TRUE(absl::IsUnavailable(training.BeginAttempt().status()));
}

// Tests that a restored server does not wait for steps that a rank had not
// taken at the time of the checkpoint.
TEST_F(CheckpointTest, RankThatLeftLongAgoIsNotWaitedForAfterARestore) {
  const Model model = {{SparseTable("e", 1, /*staleness=*/1)}};
  constexpr WorkerId kStays = {0, 11};
  constexpr WorkerId kLeaves = {1, 12};
  constexpr uint64_t kSteps = 20;
  Server::Options options;
  options.membership.expected_workers = 2;
  const auto push = [](SmallServer* server, const WorkerId& id, uint64_t step) {
    ASSERT_TRUE(server->Pull(id, step).ok());
    ASSERT_TRUE(
        server->Push(id, step, {{Ids("e", {5}), Floats("e", {1, 1}, {1})}})
            .ok());
  };
  {
    SmallServer server(options);
    CheckpointWriter writer(&files_, &*server, {});
    ASSERT_TRUE(server.Define(model).ok());
    ASSERT_TRUE(server->Join(SmallServer::kView, kStays).ok());
    ASSERT_TRUE(server->Join(SmallServer::kView, kLeaves).ok());
    for (uint64_t step = 0; step < 3; ++step) {
      push(&server, kStays, step);
      push(&server, kLeaves, step);
    }
    server->Leave(kLeaves);
    for (uint64_t step = 3; step < kSteps; ++step) push(&server, kStays, step);
    while (server->report().held_bytes > 0) std::this_thread::yield();
    const auto begun = writer.Begin({SmallServer::kView});
    ASSERT_TRUE(begun.ok()) << begun.status();
    const auto shard = writer.Write(begun->attempt, absl::nullopt);
    ASSERT_TRUE(shard.ok()) << shard.status();
    ASSERT_TRUE(writer.Commit(begun->attempt, {*shard}).ok());
  }
  options.restore = RestoreFrom(&files_);
  SmallServer server(options);
  Server::Definition definition = SmallServer::Definition(model);
  definition.cut = server->ChooseCut(definition.run)->cut;
  ASSERT_TRUE(server->Define(definition).ok());
  const auto stays = server->Join(SmallServer::kView, kStays);
  const auto leaves = server->Join(SmallServer::kView, kLeaves);
  ASSERT_TRUE(stays.ok() && leaves.ok());
  EXPECT_EQ(stays->clock, kSteps);
  EXPECT_GE(leaves->clock, kSteps - 1);
  EXPECT_TRUE(server.StartPull(kStays, kSteps).is_there());
}

// A rank that was lost at one server joins that server again, at a clock after
// its own pushes. Another server may still count the pushes between, so these
// pushes are not inside the cut.
TEST_F(CheckpointTest, RankThatJoinsAheadOfACutHasTheClockOfTheCut) {
  const Model model = {{SparseTable("e", 1, /*staleness=*/1)}};
  constexpr WorkerId kStays = {0, 11};
  constexpr WorkerId kIsLost = {1, 12};
  Server::Options options;
  options.membership.expected_workers = 2;
  SmallServer server(options);
  CheckpointWriter writer(&files_, &*server, {});
  ASSERT_TRUE(server.Define(model).ok());
  ASSERT_TRUE(server->Join(SmallServer::kView, kStays).ok());
  ASSERT_TRUE(server->Join(SmallServer::kView, kIsLost).ok());
  const auto push = [&](const WorkerId& id, uint64_t step) {
    ASSERT_TRUE(
        server.Push(id, step, {{Ids("e", {5}), Floats("e", {1, 1}, {1})}})
            .ok());
  };
  push(kStays, 0);
  push(kIsLost, 0);
  server->Lost(kIsLost);
  push(kStays, 1);
  push(kStays, 2);
  while (server->report().held_bytes > 0) std::this_thread::yield();
  const auto begun = writer.Begin({SmallServer::kView});
  ASSERT_TRUE(begun.ok()) << begun.status();
  const auto held = server->HoldSteps(SmallServer::kView);
  ASSERT_TRUE(held.ok()) << held.status();
  const auto joined = server->Join(SmallServer::kView, kIsLost);
  ASSERT_TRUE(joined.ok()) << joined.status();
  ASSERT_GT(joined->clock, 1u);
  const auto first_join = server->Join(SmallServer::kView, {2, 13});
  ASSERT_TRUE(first_join.ok()) << first_join.status();
  ASSERT_GT(first_join->clock, 0u);
  const auto shard = writer.Write(begun->attempt, FirstCutOf({*held}, false));
  ASSERT_TRUE(shard.ok()) << shard.status();
  ASSERT_TRUE(writer.Commit(begun->attempt, {*shard}).ok());
  const auto manifest = checkpoint::ReadManifest(&files_, begun->attempt.step);
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  ASSERT_EQ(manifest->cut.clocks.size(), 3u);
  EXPECT_EQ(manifest->cut.clocks[0].clock, 3u);
  EXPECT_EQ(manifest->cut.clocks[1].clock, 1u);
  EXPECT_EQ(manifest->cut.clocks[2].clock, 0u);
  // Expects no new checkpoint, because a join adds nothing to a checkpoint.
  EXPECT_EQ(writer.Begin(RequestTo(&server)).status().code(),
            absl::StatusCode::kAlreadyExists);
}

// Tests a rank that has pushed nothing since the restore. Another server may
// count its pushes from the clock of the checkpoint on.
TEST_F(CheckpointTest, RankThatJoinsAheadAfterARestoreKeepsItsRestoredClock) {
  const Model model = {{SparseTable("e", 1, /*staleness=*/1)}};
  constexpr WorkerId kStays = {0, 11};
  constexpr WorkerId kIsAway = {1, 12};
  const tensor::Bundle gradients = {{Ids("e", {5}), Floats("e", {1, 1}, {1})}};
  // Takes a checkpoint as a client does, and returns its clocks.
  const auto take = [&](SmallServer* server) {
    CheckpointWriter writer(&files_, &**server, {});
    const auto begun = writer.Begin(RequestTo(server));
    const auto held = (*server)->HoldSteps(SmallServer::kView);
    std::vector<checkpoint::WorkerClock> none;
    if (!begun.ok() || !held.ok()) return none;
    const auto shard = writer.Write(begun->attempt, FirstCutOf({*held}, false));
    if (!shard.ok() || !writer.Commit(begun->attempt, {*shard}).ok()) {
      return none;
    }
    const uint64_t step = begun->attempt.step;
    return checkpoint::ReadManifest(&files_, step)->cut.clocks;
  };
  Server::Options options;
  options.membership.expected_workers = 2;
  {
    SmallServer server(options);
    ASSERT_TRUE(server.Define(model).ok());
    ASSERT_TRUE(server->Join(SmallServer::kView, kStays).ok());
    ASSERT_TRUE(server->Join(SmallServer::kView, kIsAway).ok());
    ASSERT_TRUE(server.Push(kIsAway, 0, gradients).ok());
    server->Leave(kIsAway);
    for (uint64_t step = 0; step < 3; ++step) {
      ASSERT_TRUE(server.Push(kStays, step, gradients).ok());
    }
    while (server->report().held_bytes > 0) std::this_thread::yield();
    const auto clocks = take(&server);
    ASSERT_EQ(clocks.size(), 2u);
    EXPECT_EQ(clocks[1].clock, 1u);
  }
  options.membership.expected_workers = 1;
  options.restore = RestoreFrom(&files_);
  SmallServer server(options);
  Server::Definition definition = SmallServer::Definition(model);
  definition.cut = server->ChooseCut(definition.run)->cut;
  ASSERT_TRUE(server->Define(definition).ok());
  ASSERT_TRUE(server->Join(SmallServer::kView, kStays).ok());
  ASSERT_TRUE(server.Push(kStays, 3, gradients).ok());
  const auto joined = server->Join(SmallServer::kView, kIsAway);
  ASSERT_TRUE(joined.ok()) << joined.status();
  ASSERT_GT(joined->clock, 1u);
  while (server->report().held_bytes > 0) std::this_thread::yield();
  const auto clocks = take(&server);
  ASSERT_EQ(clocks.size(), 2u);
  EXPECT_EQ(clocks[0].clock, 4u);
  EXPECT_EQ(clocks[1].clock, 1u);
}

// Tests a synchronous and an asynchronous table; see cut_test.
TEST_F(CheckpointTest, PushIsInAllTablesOfACheckpointOrInNone) {
  Model model = {{DenseTable("w", {1}),
                  SparseTable("e", 1, ConsistencyPolicy::kUnlimited)}};
  SmallTraining::Options options = Of(1);
  options.workers = 2;
  SmallTraining training(model, &files_, options);
  Start(&training);
  TableValues gradients;
  gradients.dense["w"] = {1};
  gradients.rows["e"] = {{5, {1}}};
  ASSERT_TRUE(training.Push(0, gradients).ok());
  while (training.server(0).report().tables[1].rows == 0) {
    std::this_thread::yield();  // until the asynchronous table has the push
  }
  CheckpointWriter& writer = training.writer(0);
  const auto attempt = training.BeginAttempt();
  ASSERT_TRUE(attempt.ok()) << attempt.status();
  const auto held = training.server(0).HoldSteps(training.view());
  ASSERT_TRUE(held.ok()) << held.status();
  gradients.rows["e"] = {{6, {1}}};
  ASSERT_TRUE(training.Push(1, gradients).ok());
  const auto shard = writer.Write(*attempt, FirstCutOf({*held}, true));
  ASSERT_TRUE(shard.ok()) << shard.status();
  ASSERT_TRUE(writer.Commit(*attempt, {*shard}).ok());
  options.restore = true;
  SmallTraining restored(model, &files_, options);
  ASSERT_TRUE(restored.Define().ok());
  const TrainingState state = restored.State();
  EXPECT_EQ(state.dense.at("w").at(0), -1);
  EXPECT_EQ(state.rows.at("e").size(), 2u);
  ASSERT_TRUE(restored.Begin().ok());
  EXPECT_EQ(restored.clock(0), 1u);
  EXPECT_EQ(restored.clock(1), 1u);
}

}  // namespace
}  // namespace penstock::ps
