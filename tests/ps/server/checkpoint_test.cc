// Tests checkpoints of servers: their content, refusals and failures.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ps/checkpoint/chain.h"
#include "ps/checkpoint/little_endian.h"
#include "ps/checkpoint/manifest.h"
#include "ps/checkpoint/names.h"
#include "ps/server/checkpoint_model.h"
#include "ps/server/checkpoint_restore.h"
#include "ps/server/checkpoint_writer.h"
#include "tensor_service/checksum.h"
#include "tests/ps/checkpoint/memory_files.h"
#include "tests/ps/server/checkpoint_fixture.h"
#include "tests/ps/server/small_server.h"
#include "tests/ps/server/small_training.h"

namespace penstock::ps {
namespace {

using checkpoint::MemoryFiles;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST_F(CheckpointTest, ModelHasTheSlotsOfEachOptimizer) {
  Model model = SmallModel();
  model.tables[0].rows = DenseSpec{tensor::DType::kBF16, {3}};
  model.tables[1].optimizer.rule = optim::Rule::kSgd;
  const auto described = CheckpointModelOf(model);
  ASSERT_TRUE(described.ok());
  const auto slots = [&](size_t table) {
    std::vector<std::string> names;
    for (const auto& slot : described->tables[table].slots) {
      names.push_back(absl::StrCat(slot.name, " ", tensor::Name(slot.dtype)));
    }
    return names;
  };
  EXPECT_THAT(slots(0), ElementsAre("m f32", "v f32", "master f32"));
  EXPECT_THAT(slots(1), IsEmpty());
  EXPECT_THAT(slots(3), ElementsAre("m f32", "v f32"));
  EXPECT_EQ(described->tables[0].dtype, tensor::DType::kBF16);
  EXPECT_THAT(described->tables[2].shape, ElementsAre(100, 50));
  EXPECT_THAT(described->tables[3].shape, ElementsAre(2));
}

TEST_F(CheckpointTest, EverythingComesBackOntoAnyNumberOfServers) {
  SmallTraining training(SmallModel(), &files_, Of(2));
  Start(&training);
  for (int i = 0; i < 3; ++i) Step(&training);
  const auto step = training.Checkpoint();
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_EQ(*step, 3u);
  EXPECT_EQ(Report(&training).last_checkpoint_step, 3u);
  const TrainingState state = training.State();
  EXPECT_EQ(state.rows.at("e").size(), 7u);
  for (size_t servers = 1; servers <= 3; ++servers) {
    EXPECT_TRUE(Restored(servers) == state) << servers << " servers";
  }
}

TEST_F(CheckpointTest, WithoutAStepThereIsNothingToWrite) {
  {
    SmallTraining training(SmallModel(), &files_, Of(1));
    Start(&training);
    ASSERT_TRUE(training.Checkpoint().ok());  // a checkpoint of first values
    EXPECT_TRUE(absl::IsAlreadyExists(training.Checkpoint().status()));
    Step(&training);
    Step(&training);
    EXPECT_EQ(*training.Checkpoint(), 2u);
  }
  SmallTraining next(SmallModel(), &files_, Of(1, true));
  Start(&next);
  EXPECT_TRUE(absl::IsAlreadyExists(next.BeginAttempt().status()));
}

TEST_F(CheckpointTest, IncrementalOnesHaveWhatHasChanged) {
  SmallTraining training(SmallModel(), &files_, Of(2));
  Start(&training);
  Step(&training);
  ASSERT_TRUE(training.Checkpoint(true).ok());  // full, because it is the first
  TableValues rows_only;
  rows_only.rows["e"] = {{7, {1, 1}}};
  ASSERT_TRUE(training.Push(0, rows_only).ok());
  ASSERT_TRUE(training.Settle().ok());
  ASSERT_EQ(*training.Checkpoint(true), 2u);
  const auto chain = checkpoint::OpenChain(&files_, 2);
  ASSERT_TRUE(chain.ok()) << chain.status();
  ASSERT_EQ(chain->links.size(), 2u);
  uint64_t rows = 0;
  for (const checkpoint::Footer& footer : chain->links[0].footers) {
    for (const checkpoint::Part& part : footer.parts) {
      EXPECT_EQ(part.kind, checkpoint::TableKind::kSparse);
      rows += part.rows;
    }
  }
  EXPECT_EQ(rows, 1u);
  EXPECT_TRUE(Restored(3) == training.State());
}

TEST_F(CheckpointTest, AnAttemptThatFailedIsNoBase) {
  SmallTraining training(SmallModel(), &files_, Of(2));
  Start(&training);
  Step(&training);
  ASSERT_TRUE(training.Checkpoint().ok());
  Step(&training);
  const auto given_up = training.BeginAttempt(true);
  ASSERT_TRUE(given_up.ok());
  ASSERT_TRUE(training.writer(1).Write(*given_up, {}).ok());
  Step(&training);
  const auto attempt = training.BeginAttempt(true);
  ASSERT_TRUE(attempt.ok()) << attempt.status();
  EXPECT_EQ(attempt->base_step, 1u);
  auto shards = training.WriteShards(*attempt);
  ASSERT_TRUE(shards.ok()) << shards.status();
  EXPECT_TRUE(
      absl::IsAborted(training.writer(0).Commit(*given_up, *shards).status()));
  ASSERT_TRUE(training.writer(0).Commit(*attempt, *shards).ok());
  EXPECT_TRUE(Restored(1) == training.State());
}

// Tests two attempts of the same step, which therefore have the same folder.
TEST_F(CheckpointTest, AShardOfAnAttemptThatCameLateIsNoBase) {
  SmallTraining training(SmallModel(), &files_, Of(1));
  Start(&training);
  Step(&training);
  const auto given_up = training.BeginAttempt();
  ASSERT_EQ(*training.Checkpoint(), 1u);
  Step(&training);
  ASSERT_TRUE(training.writer(0).Write(*given_up, {}).ok());
  Step(&training);
  ASSERT_EQ(*training.Checkpoint(true), 3u);
  ASSERT_EQ(checkpoint::OpenChain(&files_, 3)->links.size(), 2u);
  EXPECT_TRUE(Restored(1) == training.State());
}

TEST_F(CheckpointTest, AServerThatDidNotWriteTheBaseRefuses) {
  SmallTraining training(SmallModel(), &files_, Of(2));
  Start(&training);
  Step(&training);
  ASSERT_TRUE(training.Checkpoint().ok());
  Step(&training);
  const auto attempt = training.BeginAttempt(true);
  ASSERT_TRUE(attempt.ok());
  CheckpointWriter started_anew(&files_, &training.server(1), {});
  const absl::Status status = started_anew.Write(*attempt, {}).status();
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("take a full one"));
}

// Tests a second caller, which gets the first caller's checkpoint only if this
// checkpoint has the second caller's pushes.
TEST_F(CheckpointTest, SecondCallerWaitsAndGetsACheckpointWithItsPushes) {
  SmallTraining::Options options = Of(1);
  options.checkpoints.commits.lease = absl::InfiniteDuration();
  SmallTraining training(SmallModel(), &files_, options);
  Start(&training);
  Step(&training);
  CheckpointWriter& writer = training.writer(0);
  const auto first = training.BeginAttempt();
  const auto shards = training.WriteShards(*first);
  ASSERT_TRUE(shards.ok()) << shards.status();
  using State = CheckpointWriter::Begun::State;
  const CheckpointWriter::Clocks before = {{0, 0, 1}};
  const auto waiting = writer.Begin({training.view(), false, 0, before});
  ASSERT_TRUE(waiting.ok()) << waiting.status();
  EXPECT_EQ(waiting->state, State::kRunning);
  EXPECT_EQ(waiting->attempt.step, 1u);
  ASSERT_TRUE(writer.Renew(*first).ok());
  ASSERT_TRUE(writer.Commit(*first, *shards).ok());

  const auto joined = writer.Begin({training.view(), false, 0, before, true});
  ASSERT_TRUE(joined.ok()) << joined.status();
  EXPECT_EQ(joined->state, State::kCommitted);
  EXPECT_EQ(joined->attempt.step, 1u);
  EXPECT_EQ(joined->bytes, (*shards)[0].info.bytes);
  Step(&training);
  const CheckpointWriter::Clocks after = {{0, 0, 2}};
  const auto next = writer.Begin({training.view(), false, 0, after, true});
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_EQ(next->state, State::kBegun);
  EXPECT_EQ(next->attempt.step, 2u);

  // Gives up an attempt, so that the next caller can begin.
  writer.GiveUp(*first);  // not the current attempt
  EXPECT_EQ(writer.Begin({training.view()})->state, State::kRunning);
  writer.GiveUp(next->attempt);
  EXPECT_TRUE(absl::IsAborted(writer.Renew(next->attempt)));
  EXPECT_EQ(*training.Checkpoint(), 2u);
}

TEST_F(CheckpointTest, CallerWhoseLeaseIsOverLosesItsTurn) {
  SmallTraining training(SmallModel(), &files_, Of(1));  // without leases
  Start(&training);
  Step(&training);
  const auto dead = training.BeginAttempt();
  const auto shards = training.WriteShards(*dead);
  ASSERT_TRUE(shards.ok()) << shards.status();
  ASSERT_EQ(*training.Checkpoint(), 1u);
  EXPECT_TRUE(absl::IsAborted(training.writer(0).Renew(*dead)));
  EXPECT_TRUE(
      absl::IsAborted(training.writer(0).Commit(*dead, *shards).status()));
  EXPECT_TRUE(Restored(1) == training.State());
}

TEST_F(CheckpointTest, VersionThatHasPassedOrNeverComesIsAnError) {
  SmallTraining::Options options = Of(1);
  options.checkpoints.max_wait = absl::Milliseconds(20);
  SmallTraining training(SmallModel(), &files_, options);
  Start(&training);
  Step(&training);
  Step(&training);
  const auto attempt = training.BeginAttempt();
  CheckpointWriter& writer = training.writer(0);
  EXPECT_TRUE(absl::IsOutOfRange(
      writer.Write(*attempt, CutPoint::OfVersion(1)).status()));
  EXPECT_TRUE(absl::IsDeadlineExceeded(
      writer.Write(*attempt, CutPoint::OfVersion(3)).status()));
  EXPECT_TRUE(writer.Write(*attempt, CutPoint::OfVersion(2)).ok());
}

TEST_F(CheckpointTest, VersionIsWaitedFor) {
  SmallTraining training(SmallModel(), &files_, Of(1));
  Start(&training);
  Step(&training);
  const auto attempt = training.BeginAttempt();
  absl::StatusOr<CheckpointWriter::Shard> shard;
  std::thread caller([&] {
    shard = training.writer(0).Write(*attempt, CutPoint::OfVersion(3));
  });
  Step(&training);
  Step(&training);
  caller.join();
  ASSERT_TRUE(shard.ok()) << shard.status();
  ASSERT_TRUE(training.writer(0).Commit(*attempt, {*shard}).ok());
  EXPECT_TRUE(Restored(1) == training.State());
}

TEST_F(CheckpointTest, CallThatIsCancelledEndsItsWait) {
  SmallTraining training(SmallModel(), &files_, Of(1));
  Start(&training);
  const auto attempt = training.BeginAttempt();
  Cancellation before;
  before.Cancel();
  CheckpointWriter& writer = training.writer(0);
  EXPECT_TRUE(absl::IsCancelled(
      writer.Write(*attempt, CutPoint::OfVersion(9), &before).status()));
  EXPECT_TRUE(absl::IsCancelled(writer.Write(*attempt, {}, &before).status()));
  Cancellation during;
  std::thread caller([&] {
    EXPECT_TRUE(absl::IsCancelled(
        writer.Write(*attempt, CutPoint::OfVersion(9), &during).status()));
  });
  during.Cancel();
  caller.join();
  EXPECT_TRUE(writer.Write(*attempt, {}).ok());
}

TEST_F(CheckpointTest, OnlyServer0BeginsAndOneProcessHasTheFolder) {
  SmallTraining training(SmallModel(), &files_, Of(2));
  Start(&training);
  const auto begun = training.writer(1).Begin({training.view()});
  EXPECT_TRUE(absl::IsFailedPrecondition(begun.status()));
  EXPECT_THAT(std::string(begun.status().message()), HasSubstr("server 0"));
  ASSERT_TRUE(training.Checkpoint().ok());
  CheckpointWriter other(&files_, &training.server(0), {});
  EXPECT_TRUE(
      absl::IsFailedPrecondition(other.Begin({training.view()}).status()));
}

TEST_F(CheckpointTest, FolderOfAnotherTrainingIsNotWrittenTo) {
  {
    SmallTraining training(SmallModel(), &files_, Of(1));
    Start(&training);
    ASSERT_TRUE(training.Checkpoint().ok());
  }
  SmallTraining other(SmallModel(), &files_, Of(1));
  Start(&other);
  const absl::Status status = other.Checkpoint().status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("restore it, or"));
}

TEST_F(CheckpointTest, GoingOnFromAnOlderOneDiscardsTheNewer) {
  {
    SmallTraining training(SmallModel(), &files_, Of(1));
    Start(&training);
    for (int i = 0; i < 3; ++i) {
      Step(&training);
      ASSERT_TRUE(training.Checkpoint().ok());
    }
  }
  SmallTraining::Options options = Of(2, true);
  options.step = 1;
  SmallTraining training(SmallModel(), &files_, options);
  ASSERT_EQ(*training.Define(), 1u);
  ASSERT_TRUE(training.Begin().ok());
  Step(&training);
  ASSERT_EQ(*training.Checkpoint(), 2u);
  EXPECT_THAT(*checkpoint::ListSteps(&files_), ElementsAre(2, 1));
  EXPECT_TRUE(Restored(1) == training.State());
}

TEST_F(CheckpointTest, FolderOfAnEarlierTrainingIsRefusedWithBothWaysOut) {
  EXPECT_TRUE(CheckUnused(&files_, "/data").ok());
  SmallTraining training(SmallModel(), &files_, Of(1));
  Start(&training);
  ASSERT_TRUE(training.Checkpoint().ok());
  const absl::Status status = CheckUnused(&files_, "/data");
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  for (const char* const part :
       {"/data", "--restore=newest", "--checkpoints"}) {
    EXPECT_THAT(std::string(status.message()), HasSubstr(part));
  }
}

TEST_F(CheckpointTest, OldOnesAreRemoved) {
  SmallTraining training(SmallModel(), &files_, Of(1));
  Start(&training);
  for (int i = 0; i < 4; ++i) {
    Step(&training);
    ASSERT_TRUE(training.Checkpoint(false, 2).ok());
  }
  EXPECT_THAT(*checkpoint::ListSteps(&files_), ElementsAre(4, 3));
}

TEST_F(CheckpointTest, AnotherModelIsRefusedByName) {
  SmallTraining training(SmallModel(), &files_, Of(1));
  Start(&training);
  ASSERT_TRUE(training.Checkpoint().ok());
  Model model = SmallModel();
  model.tables[1].optimizer.rule = optim::Rule::kSgd;
  SmallTraining other(model, &files_, Of(1, true));
  const absl::Status status = other.Define().status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("'b' has slots m f32"));
}

TEST_F(CheckpointTest, StepThatIsNotThereIsAnErrorAndNoNewBeginning) {
  SmallTraining::Options options = Of(1, true);
  EXPECT_EQ(*SmallTraining(SmallModel(), &files_, options).Define(), 0u);
  options.step = 5;
  EXPECT_TRUE(absl::IsFailedPrecondition(
      SmallTraining(SmallModel(), &files_, options).Define().status()));
}

// Writes version 2 into a manifest, with a matching checksum.
std::string OfNewerFormat(std::string bytes) {
  bytes[8] = 2;
  std::string sum;
  checkpoint::Put(
      checkpoint::Digest(
          tensor::ChecksumOf(bytes.substr(checkpoint::kManifestHeaderBytes)),
          bytes.substr(0, 16)),
      &sum);
  return bytes.replace(16, 8, sum);
}

TEST_F(CheckpointTest, NewerFormatIsAnErrorAndNotPassedOver) {
  SmallTraining training(SmallModel(), &files_, Of(1));
  Start(&training);
  for (int i = 0; i < 2; ++i) {
    Step(&training);
    ASSERT_TRUE(training.Checkpoint().ok());
  }
  std::string* const manifest = files_.Bytes(checkpoint::ManifestPath(2));
  *manifest = OfNewerFormat(*manifest);
  const absl::Status status =
      SmallTraining(SmallModel(), &files_, Of(1, true)).Define().status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("version 2"));
}

TEST_F(CheckpointTest, DamagedOneIsPassedOver) {
  SmallTraining training(SmallModel(), &files_, Of(1));
  Start(&training);
  Step(&training);
  ASSERT_TRUE(training.Checkpoint().ok());
  const TrainingState first = training.State();
  Step(&training);
  ASSERT_TRUE(training.Checkpoint().ok());
  for (const auto& [path, bytes] : files_.Contents()) {
    if (path.find("step-0000000002/shard") != 0) continue;
    (*files_.Bytes(path))[bytes.size() / 2] ^= 1;
  }
  SmallTraining unverified(SmallModel(), &files_, Of(1, true));
  EXPECT_TRUE(absl::IsDataLoss(unverified.Define().status()));
  EXPECT_EQ((*RestoreFrom(&files_)->Choose(/*verifies=*/true))->step, 1u);
  EXPECT_TRUE(Restored(2, 1) == first);
}

}  // namespace
}  // namespace penstock::ps
