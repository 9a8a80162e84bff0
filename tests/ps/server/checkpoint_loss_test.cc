// Tests checkpoints whose files are lost, damaged or refused while a training
// runs, and the messages to an operator.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ps/checkpoint/chain.h"
#include "ps/checkpoint/manifest.h"
#include "ps/checkpoint/names.h"
#include "ps/server/checkpoint_restore.h"
#include "ps/server/checkpoint_writer.h"
#include "tests/ps/server/checkpoint_fixture.h"

namespace penstock::ps {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class CheckpointLossTest : public CheckpointTest {
 protected:
  SmallTraining::Options Logging(size_t servers, bool restore = false) {
    SmallTraining::Options options = Of(servers, restore);
    options.checkpoints.commits.log = [this](const std::string& line) {
      said_.push_back(line);
    };
    return options;
  }
  // Flips a bit in the middle of a checkpoint's shard.
  void Damage(uint64_t step) {
    const auto manifest = checkpoint::ReadManifest(&files_, step);
    ASSERT_TRUE(manifest.ok()) << manifest.status();
    std::string* const bytes =
        files_.Bytes(checkpoint::ShardPath(step, 0, manifest->attempt.id));
    (*bytes)[bytes->size() / 2] ^= 1;
  }
  size_t LinksOf(uint64_t step) {
    const auto chain = checkpoint::OpenChain(&files_, step);
    EXPECT_TRUE(chain.ok()) << chain.status();
    return chain.ok() ? chain->links.size() : 0;
  }

  std::vector<std::string> said_;
};

// Tests a folder that was emptied. The next checkpoint comes after another
// step, or without another step.
TEST_F(CheckpointLossTest, FolderThatWasEmptiedGetsAFullCheckpoint) {
  SmallTraining training(SmallModel(), &files_, Logging(2));
  Start(&training);
  for (const bool has_step : {true, false}) {
    Step(&training);
    ASSERT_TRUE(training.Checkpoint(true).ok());
    files_.RemoveAll();
    if (has_step) Step(&training);
    said_.clear();
    const auto step = training.Checkpoint(true);
    ASSERT_TRUE(step.ok()) << step.status();
    EXPECT_EQ(LinksOf(*step), 1u);
    EXPECT_THAT(said_, ElementsAre(HasSubstr("locked the folder again"),
                                   HasSubstr("has lost step-")));
    EXPECT_TRUE(Restored(1) == training.State());
  }
}

TEST_F(CheckpointLossTest, RestoredCheckpointThatIsLostIsWrittenAnew) {
  {
    SmallTraining training(SmallModel(), &files_, Of(1));
    Start(&training);
    Step(&training);
    ASSERT_TRUE(training.Checkpoint().ok());
  }
  SmallTraining training(SmallModel(), &files_, Logging(1, true));
  Start(&training);
  files_.RemoveAll();
  ASSERT_TRUE(training.Checkpoint(true).ok());
  EXPECT_THAT(said_, testing::Contains(HasSubstr("has lost step-0000000001")));
  EXPECT_TRUE(Restored(1) == training.State());
}

TEST_F(CheckpointLossTest, DamagedBaseIsNoticedByTheNextIncrementalOne) {
  SmallTraining training(SmallModel(), &files_, Logging(1));
  Start(&training);
  for (size_t links : {1, 2, 3}) {
    Step(&training);
    ASSERT_EQ(*training.Checkpoint(true), links);
    ASSERT_EQ(LinksOf(links), links);
  }
  EXPECT_THAT(said_, IsEmpty());
  Damage(1);
  Step(&training);
  ASSERT_EQ(*training.Checkpoint(true), 4u);
  EXPECT_EQ(LinksOf(4), 1u);
  ASSERT_THAT(said_, SizeIs(1));
  EXPECT_THAT(said_[0], HasSubstr("step-0000000003 cannot be a base"));
  EXPECT_THAT(said_[0], HasSubstr("step-0000000001"));
  EXPECT_TRUE(Restored(1) == training.State());
  Step(&training);
  ASSERT_EQ(*training.Checkpoint(true), 5u);
  EXPECT_EQ(LinksOf(5), 2u);
}

TEST_F(CheckpointLossTest, StartWithoutManifestsIsRefusedWithTheWaysOut) {
  SmallTraining first(SmallModel(), &files_, Of(1));
  Start(&first);
  for (int i = 0; i < 2; ++i) {
    Step(&first);
    ASSERT_TRUE(first.Checkpoint().ok());
  }
  std::vector<std::string> said;
  RestoreOptions options;
  options.folder = "/data";
  options.log = [&](const std::string& line) { said.push_back(line); };
  const auto source = RestoreFrom(&files_, {}, options);
  ASSERT_TRUE(files_.Remove(checkpoint::ManifestPath(2)).ok());
  const auto older = source->Choose(true);
  ASSERT_TRUE(older.ok()) << older.status();
  EXPECT_EQ((*older)->step, 1u);
  EXPECT_THAT(said, ElementsAre(HasSubstr("step-0000000002 of /data was")));

  ASSERT_TRUE(files_.Remove(checkpoint::ManifestPath(1)).ok());
  const auto before = files_.Contents();
  for (const absl::Status& status :
       {source->Choose(true).status(), CheckUnused(&files_, "/data")}) {
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("/data had step-0000000002 and 1 more"));
  }
  files_.LoseLock();
  SmallTraining next(SmallModel(), &files_, Of(1));
  Start(&next);
  Step(&next);
  EXPECT_TRUE(absl::IsFailedPrecondition(next.Checkpoint().status()));
  EXPECT_TRUE(files_.Contents() == before);
}

TEST_F(CheckpointLossTest, FolderThatIsNotSharedIsNamed) {
  SmallTraining training(SmallModel(), &files_, Of(2));
  Start(&training);
  Step(&training);
  checkpoint::MemoryFiles own;
  CheckpointWriter elsewhere(&own, &training.server(1), {});
  const auto attempt = training.BeginAttempt();
  ASSERT_TRUE(attempt.ok()) << attempt.status();
  absl::Status status = elsewhere.Write(*attempt, {}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("shared folder"));
  // Makes the folder of this step in the second folder, like an earlier
  // checkpoint of the same step.
  ASSERT_TRUE(own.MakeFolder(checkpoint::StepFolder(1)).ok());
  const auto here = training.writer(0).Write(*attempt, {});
  const auto there = elsewhere.Write(*attempt, {});
  ASSERT_TRUE(here.ok() && there.ok()) << here.status() << there.status();
  status = training.writer(0).Commit(*attempt, {*here, *there}).status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("server 1 has written it elsewhere"));
}

TEST_F(CheckpointLossTest, FailuresAreReportedUntilACheckpointIsGood) {
  SmallTraining training(SmallModel(), &files_, Logging(1));
  Start(&training);
  CheckpointWriter& writer = training.writer(0);
  writer.RecordFailure("checkpoint: the disk is full");
  Step(&training);
  ASSERT_TRUE(training.Checkpoint().ok());
  ServerReport report = Report(&training);
  EXPECT_EQ(report.checkpoint_failures, 1u);
  EXPECT_EQ(report.checkpoint_failure, "");
  EXPECT_EQ(report.checkpoints, 1u);
  EXPECT_GT(report.checkpoints_bytes, 0u);
  for (int i = 0; i < 2; ++i) writer.RecordFailure("checkpoint: no room");
  report = Report(&training);
  EXPECT_EQ(report.checkpoint_failures, 3u);
  EXPECT_EQ(report.checkpoint_failures_since, 2u);
  EXPECT_EQ(report.checkpoint_failure, "no room");
  EXPECT_GT(report.last_checkpoint_age, absl::ZeroDuration());
  ASSERT_THAT(said_, SizeIs(3));
  EXPECT_THAT(said_[0], HasSubstr("the disk is full; this process has"));
  EXPECT_THAT(said_[2], HasSubstr("2 in a row: no room; the last good one is "
                                  "of step 1"));
}

}  // namespace
}  // namespace penstock::ps
