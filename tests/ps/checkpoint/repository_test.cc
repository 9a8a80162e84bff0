#include "ps/checkpoint/repository.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "ps/checkpoint/names.h"
#include "ps/checkpoint/retention.h"
#include "ps/checkpoint/verify.h"
#include "tests/ps/checkpoint/memory_files.h"
#include "tests/ps/checkpoint/repository_fixture.h"
#include "tests/ps/checkpoint/world.h"

namespace penstock::ps::checkpoint {
namespace {

TEST_F(RepositoryTest, ThereIsNoCheckpointBeforeItsCommit) {
  const auto shards = Shards(1);
  EXPECT_TRUE(List().empty());
  ASSERT_TRUE(repository_->Commit(shards, {}).ok());
  EXPECT_EQ(List(), Steps{1});
}

TEST_F(RepositoryTest, ARootHasOneWriter) {
  const absl::Status status = Repository::Open(&files_).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
}

// Tests two trainings that both began with step 2 in one folder. Neither
// training may remove checkpoints of the other.
TEST_F(RepositoryTest, CheckpointsOfAnotherTrainingAreNeverRemoved) {
  ASSERT_TRUE(Write(2).ok());
  Reopen();
  const auto shards = Shards(6);
  files_.LoseLock();
  {
    auto other = Repository::Open(&files_);
    ASSERT_TRUE(other.ok()) << other.status();
    for (const uint64_t step : {3, 5}) {
      ASSERT_TRUE(world_.Write(&files_, other->get(), step, 2).ok());
    }
  }
  for (const absl::Status& status : {repository_->Commit(shards, {}), Write(4),
                                     repository_->SetAsideNewer(2).status(),
                                     repository_->Prune(1).status()}) {
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_NE(status.message().find("step-0000000005"), std::string::npos)
        << status;
  }
  EXPECT_EQ(List(), (Steps{5, 3, 2}));
}

TEST_F(RepositoryTest, ACommitWantsAllShardsAndEachOnce) {
  auto shards = Shards(1);
  EXPECT_FALSE(repository_->Commit({shards[0]}, {}).ok());
  shards = Shards(1);
  EXPECT_FALSE(repository_->Commit({shards[1], shards[1]}, {}).ok());
  shards = Shards(1);
  shards[1].checksum ^= 1;
  EXPECT_TRUE(absl::IsDataLoss(repository_->Commit(shards, {})));
  shards = Shards(1);
  shards[1].bytes += 1;
  EXPECT_TRUE(absl::IsDataLoss(repository_->Commit(shards, {})));
  // Expects that each error has ended the attempt, and has left no files.
  EXPECT_EQ(files_.Contents().size(), 1u);
  EXPECT_FALSE(repository_->Commit(shards, {}).ok());
}

TEST_F(RepositoryTest, AFullCheckpointHasEveryRowOnce) {
  const auto committed = [&](size_t first, size_t second, bool changed) {
    const auto attempt = repository_->Begin(world_.Describe(1, 2, {}));
    std::vector<ShardInfo> shards;
    // Writes the shards of two servers: each writes the rows of `first` or of
    // `second`.
    for (size_t server : {first, second}) {
      World world = world_;
      world.Clean();
      auto info = world.WriteShard(&files_, *attempt, server, 2, changed);
      if (!info.ok()) break;
      shards.push_back(*info);
    }
    return repository_->Commit(shards, {});
  };
  // Commits shards without a dense table, because no dense table has changed.
  const absl::Status status = committed(0, 1, true);
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "row 0 of table 'large'"))
      << status;
  EXPECT_TRUE(committed(0, 1, false).ok());
}

TEST_F(RepositoryTest, RowsThatTwoServersHoldAreRefused) {
  const auto attempt = repository_->Begin(world_.Describe(1, 2, {}));
  std::vector<ShardInfo> shards = {
      *world_.WriteShard(&files_, *attempt, 0, 1, false),
  };
  auto writer = ShardWriter::Create(&files_, &world_.model(), *attempt, 1);
  const std::string scalar(8, 'x');
  ASSERT_TRUE((*writer)->AddDense({1, 0, 1, 1, {scalar}}).ok());
  shards.push_back(*(*writer)->Finish({}));
  const absl::Status status = repository_->Commit(shards, {});
  EXPECT_EQ(status.message(), "row 0 of table 'scalar' appears twice");
}

TEST_F(RepositoryTest, AStepIsWrittenOnce) {
  ASSERT_TRUE(Write(1).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(Write(1)));
  *files_.Bytes(ManifestPath(1)) = "damaged";
  EXPECT_TRUE(absl::IsAlreadyExists(Write(1)));
  ASSERT_TRUE(repository_->SetAsideNewer(0).ok());
  EXPECT_TRUE(Write(1).ok());
}

TEST_F(RepositoryTest, OneAttemptAtATime) {
  ASSERT_TRUE(repository_->Begin(world_.Describe(1, 2, {})).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(
      repository_->Begin(world_.Describe(2, 2, {})).status()));
  EXPECT_TRUE(
      absl::IsFailedPrecondition(repository_->SetAsideNewer(0).status()));
  repository_->Abort();
  EXPECT_TRUE(repository_->Begin(world_.Describe(2, 2, {})).ok());
}

// Tests a server that hangs while its attempt is aborted, and continues
// afterwards.
TEST_F(RepositoryTest, AServerOfAnEarlierAttemptHarmsNothing) {
  const auto old = repository_->Begin(world_.Describe(1, 2, {}));
  auto late = ShardWriter::Create(&files_, &world_.model(), *old, 0);
  repository_->Abort();
  ASSERT_TRUE(Write(1).ok());
  (*late)->Finish({}).status().IgnoreError();
  late = ShardWriter::Create(&files_, &world_.model(), *old, 0);
  const auto info = (*late)->Finish({});
  ASSERT_TRUE(info.ok());  // nobody asked for this shard
  const auto found = FindLastGood(&files_, Thoroughness::kFull);
  ASSERT_TRUE(found.ok());
  EXPECT_TRUE(*World::Read(&files_, found->chain, 1) == world_);
  const size_t before = files_.Contents().size();
  Reopen();
  EXPECT_EQ(files_.Contents().size(), before - 1);
  // Expects that the repository does not accept the shard for the next attempt,
  // either.
  ASSERT_TRUE(repository_->Begin(world_.Describe(2, 1, {})).ok());
  EXPECT_FALSE(repository_->Commit({*info}, {}).ok());
}

TEST_F(RepositoryTest, AChainIsBounded) {
  ASSERT_TRUE(Write(0).ok());
  for (uint64_t step = 1; step <= 16; ++step) {
    ASSERT_TRUE(Write(step, step - 1).ok());
  }
  const absl::Status status = Write(17, 16);
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "take a full one"));
  EXPECT_TRUE(Write(17).ok());
}

TEST_F(RepositoryTest, WhatCannotBeABaseIsRefused) {
  ASSERT_TRUE(Write(1).ok());
  NewCheckpoint checkpoint = world_.Describe(2, 2, 1);
  checkpoint.placement_epoch = 9;
  EXPECT_TRUE(
      absl::IsFailedPrecondition(repository_->Begin(checkpoint).status()));
  checkpoint = world_.Describe(2, 2, 1);
  checkpoint.model.tables[0].shape = {41, 7};
  EXPECT_TRUE(
      absl::IsFailedPrecondition(repository_->Begin(checkpoint).status()));
  checkpoint = world_.Describe(2, 2, 1);
  std::swap(checkpoint.model.tables[0], checkpoint.model.tables[1]);
  EXPECT_TRUE(
      absl::IsFailedPrecondition(repository_->Begin(checkpoint).status()));
  for (uint64_t base : {2, 3}) {
    EXPECT_TRUE(absl::IsFailedPrecondition(
        repository_->Begin(world_.Describe(2, 2, base)).status()));
  }
  EXPECT_TRUE(absl::IsFailedPrecondition(
      repository_->Begin(world_.Describe(2, 2, 0)).status()));
  EXPECT_TRUE(Write(2, 1).ok());
}

TEST_F(RepositoryTest, BadDescriptionsAreRefused) {
  NewCheckpoint checkpoint = world_.Describe(1, 0, {});
  EXPECT_TRUE(absl::IsInvalidArgument(repository_->Begin(checkpoint).status()));
  checkpoint = world_.Describe(1, kMaxShards + 1, {});
  EXPECT_TRUE(absl::IsInvalidArgument(repository_->Begin(checkpoint).status()));
  checkpoint = world_.Describe(1, 1, {});
  checkpoint.model.tables[1].name = "large";
  EXPECT_EQ(repository_->Begin(checkpoint).status().message(),
            "table 'large': appears twice");
  checkpoint.model.tables[1].name = "";
  EXPECT_TRUE(absl::IsInvalidArgument(repository_->Begin(checkpoint).status()));
  EXPECT_EQ(files_.Contents().size(), 1u);
}

TEST_F(RepositoryTest, PruningKeepsWhatChainsNeed) {
  ASSERT_TRUE(Write(1).ok());
  ASSERT_TRUE(Write(2).ok());
  ASSERT_TRUE(Write(3, 2).ok());
  ASSERT_TRUE(Write(4, 3).ok());
  ASSERT_TRUE(Write(5, 3).ok());
  EXPECT_EQ(*repository_->Prune(1), Steps{4});
  EXPECT_EQ(List(), (Steps{5, 3, 2, 1}));
  ASSERT_TRUE(Write(6).ok());
  EXPECT_EQ(*repository_->Prune(1), (Steps{5, 3, 2, 1}));
  EXPECT_EQ(*repository_->Prune(0), Steps{});  // keeps at least one
  EXPECT_EQ(List(), Steps{6});
}

TEST_F(RepositoryTest, PruningCountsGoodOnesOnly) {
  for (uint64_t step : {1, 2, 3}) ASSERT_TRUE(Write(step).ok());
  *files_.Bytes(ManifestPath(3)) = "damaged";
  EXPECT_EQ(*repository_->Prune(1), Steps{1});
  EXPECT_EQ(List(), (Steps{3, 2}));
  *files_.Bytes(ManifestPath(2)) = "damaged";
  EXPECT_EQ(*repository_->Prune(1), Steps{});
}

TEST_F(RepositoryTest, PruningKeepsTheBaseOfWhatIsBeingWritten) {
  ASSERT_TRUE(Write(1).ok());
  ASSERT_TRUE(Write(2).ok());
  ASSERT_TRUE(repository_->Begin(world_.Describe(3, 2, 1)).ok());
  EXPECT_EQ(*repository_->Prune(1), Steps{});
  repository_->Abort();
  EXPECT_EQ(*repository_->Prune(1), Steps{1});
}

// Tests checkpoint 4 while it is temporarily unreadable. The bases of
// checkpoint 4 must stay.
TEST_F(RepositoryTest, PruningThatCannotReadACheckpointIsAnError) {
  ASSERT_TRUE(Write(1).ok());
  world_.Clean();
  for (uint64_t step : {2, 3}) ASSERT_TRUE(Write(step).ok());
  ASSERT_TRUE(Write(4, 1).ok());
  for (int number = 0; List() != (Steps{4, 3, 1}); ++number) {
    files_.FailOnce(files_.operations() + number,
                    absl::PermissionDeniedError("not now"));
    (void)repository_->Prune(1);
    files_.FailOnce(-1, absl::OkStatus());
    const auto found = FindLastGood(&files_, Thoroughness::kQuick);
    ASSERT_TRUE(found.ok()) << number << found.status();
    ASSERT_EQ(found->chain.newest().attempt.step, 4u) << number;
  }
}

TEST_F(RepositoryTest, AFileThatIsNotOursStays) {
  files_.Plant("step-0000000007/notes.txt", "mine");
  files_.Plant("step-0000000007/shard-00000-0000000000000001", "left");
  files_.Plant("step-7/manifest", "mine, too");
  files_.Plant("readme", "hello");
  Reopen();
  const auto files = files_.Contents();
  EXPECT_EQ(files.count("step-0000000007/notes.txt"), 1u);
  EXPECT_EQ(files.count("step-7/manifest"), 1u);
  EXPECT_EQ(files.count("readme"), 1u);
  EXPECT_EQ(files.size(), 4u);  // including the lock
  EXPECT_TRUE(List().empty());
  EXPECT_TRUE(Write(7).ok());
}

// Files in memory that run an action right after a folder was listed.
class BusyFiles : public MemoryFiles {
 public:
  absl::StatusOr<std::vector<FolderEntry>> List(
      absl::string_view folder) override {
    auto entries = MemoryFiles::List(folder);
    if (folder == "step-0000000001") then();
    return entries;
  }
  std::function<void()> then = [] {};
};

// Tests servers of an earlier run that still write and remove files. They do
// not know that their run is over.
TEST(RepositoryOpenTest, ServersThatStillWriteAndRemoveHarmNothing) {
  BusyFiles files;
  World world;
  files.Plant("step-0000000001/shard-00000-0000000000000001", "left");
  files.then = [&] {
    files.Plant("step-0000000001/shard-00001-0000000000000001", "late");
  };
  auto repository = Repository::Open(&files);
  ASSERT_TRUE(repository.ok()) << repository.status();
  files.then = [] {};
  ASSERT_TRUE(world.Write(&files, repository->get(), 1, 2).ok());
  // Expects an error although the folder now has a checkpoint and a foreign
  // shard.
  const char kLeft[] = "step-0000000001/shard-00007-0000000000000001";
  files.Plant(kLeft, "left");
  files.then = [&] { files.Remove(kLeft).IgnoreError(); };
  repository->reset();
  repository = Repository::Open(&files);
  ASSERT_TRUE(repository.ok()) << repository.status();
  EXPECT_TRUE(FindLastGood(&files, Thoroughness::kFull).ok());
}

// Tests that newer checkpoints, good or damaged, are set aside, even repeatedly
// with the same steps. No byte is lost.
TEST_F(RepositoryTest, ARunThatGoesOnFromAnOlderOneSetsTheNewerAside) {
  std::map<std::string, std::string> aside;
  for (const int number : {1, 2}) {
    for (uint64_t step : {1, 2, 3}) {
      if (step == 1 && number > 1) continue;
      ASSERT_TRUE(Write(step).ok());
    }
    *files_.Bytes(ManifestPath(3)) = "damaged";
    for (const auto& [path, bytes] : files_.Contents()) {
      for (const uint64_t step : {2, 3}) {
        if (!absl::StartsWith(path, StepFolder(step))) continue;
        aside[AsideFolder(step, number) +
              path.substr(StepFolder(step).size())] = bytes;
      }
    }
    const auto folders = repository_->SetAsideNewer(1);
    ASSERT_TRUE(folders.ok()) << folders.status();
    EXPECT_EQ(*folders, (std::vector<std::string>{AsideFolder(3, number),
                                                  AsideFolder(2, number)}));
    EXPECT_EQ(List(), Steps{1});
  }
  Reopen();
  ASSERT_TRUE(repository_->Prune(1).ok());
  const auto contents = files_.Contents();
  uint64_t aside_bytes = 0;
  for (const auto& [path, bytes] : aside) {
    ASSERT_EQ(contents.count(path), 1u) << path;
    EXPECT_EQ(contents.at(path), bytes);
    aside_bytes += bytes.size();
  }
  const auto held = SizeOf(&files_);
  ASSERT_TRUE(held.ok()) << held.status();
  EXPECT_EQ(held->checkpoints, 1u);
  EXPECT_EQ(held->aside, 4u);
  EXPECT_EQ(held->aside_bytes, aside_bytes);
}

}  // namespace
}  // namespace penstock::ps::checkpoint
