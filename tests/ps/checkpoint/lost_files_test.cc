// Tests files that are removed below a repository, and files that a repository
// cannot remove.

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ps/checkpoint/index.h"
#include "ps/checkpoint/manifest.h"
#include "ps/checkpoint/names.h"
#include "ps/checkpoint/verify.h"
#include "tests/ps/checkpoint/repository_fixture.h"

namespace penstock::ps::checkpoint {
namespace {

// Tests Reclaim() after the lock, or all files, were removed. Reclaim() locks
// the folder again, unless another process may have written since.
TEST_F(RepositoryTest, LockIsTakenAgainUnlessAnotherProcessMayWrite) {
  ASSERT_TRUE(Write(1).ok());
  EXPECT_EQ(*repository_->Reclaim(), false);
  ASSERT_TRUE(files_.Remove(kLockName).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(Write(2)));
  EXPECT_EQ(*repository_->Reclaim(), true);
  EXPECT_TRUE(Write(2).ok());
  files_.RemoveAll();
  EXPECT_EQ(*repository_->Reclaim(), true);
  EXPECT_TRUE(Write(3).ok());
  ASSERT_TRUE(files_.Remove(kLockName).ok());
  {
    auto other = Repository::Open(&files_);
    ASSERT_TRUE(other.ok()) << other.status();
    EXPECT_TRUE(absl::IsFailedPrecondition(repository_->Reclaim().status()));
    ASSERT_TRUE(world_.Write(&files_, other->get(), 4, 2).ok());
  }
  const absl::Status status = repository_->Reclaim().status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "step-0000000004"));
  // Expects that a new process may open the repository.
  EXPECT_TRUE(Repository::Open(&files_).ok());
}

// Tests a full disk, which refuses even to remove the files of the failed
// attempt. The next attempt removes them.
TEST_F(RepositoryTest, LeftoversAreRemovedOnceTheDiskPermits) {
  Shards(1);
  files_.CrashAt(files_.operations());
  repository_->Abort();
  files_.CrashAt(-1);
  ASSERT_TRUE(Write(2).ok());
  for (const auto& [path, bytes] : files_.Contents()) {
    EXPECT_TRUE(path == kLockName || path == kIndexName ||
                absl::StartsWith(path, StepFolder(2)))
        << path;
  }
}

// Tests that the files of a lost checkpoint stay until they are set aside.
TEST_F(RepositoryTest, LostManifestsAreNoticedAndTheirShardsAreKept) {
  for (uint64_t step : {1, 2, 3}) ASSERT_TRUE(Write(step).ok());
  EXPECT_EQ(*ListLost(&files_), Steps{});
  EXPECT_TRUE(CheckNotAllLost(&files_, "/data").ok());
  for (uint64_t step : {1, 3}) {
    ASSERT_TRUE(files_.Remove(ManifestPath(step)).ok());
  }
  const auto before = files_.Contents();
  Reopen();
  EXPECT_TRUE(files_.Contents() == before);
  EXPECT_EQ(*ListLost(&files_), (Steps{3, 1}));
  EXPECT_TRUE(CheckNotAllLost(&files_, "/data").ok());
  ASSERT_TRUE(files_.Remove(ManifestPath(2)).ok());
  const absl::Status status = CheckNotAllLost(&files_, "/data");
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  for (const char* const part :
       {"/data had step-0000000003 and 2 more", "another folder", "index"}) {
    EXPECT_TRUE(absl::StrContains(status.message(), part)) << status;
  }
  ASSERT_TRUE(repository_->SetAsideNewer(0).ok());
  ASSERT_TRUE(Write(1).ok());
  EXPECT_EQ(*ListLost(&files_), Steps{});
  const auto after = files_.Contents();
  for (const auto& [path, bytes] : before) {
    if (!absl::StartsWith(path, "step-") || path == ManifestPath(2)) continue;
    const std::string name = absl::StrCat("aside-", path.substr(5, 10), "-1",
                                          path.substr(path.find('/')));
    ASSERT_EQ(after.count(name), 1u) << name;
    EXPECT_EQ(after.at(name), bytes);
  }
}

// Files in memory, on a disk without room for new ones.
class FullFiles : public MemoryFiles {
 public:
  absl::StatusOr<std::unique_ptr<WritableFile>> Create(
      absl::string_view path) override {
    if (is_full) return absl::ResourceExhaustedError("the disk is full");
    return MemoryFiles::Create(path);
  }
  bool is_full = false;
};

TEST(IndexTest, FullDiskLetsOldCheckpointsGo) {
  FullFiles files;
  World world;
  auto repository = *Repository::Open(&files);
  for (uint64_t step : {1, 2}) {
    ASSERT_TRUE(world.Write(&files, repository.get(), step, 2).ok());
  }
  files.is_full = true;
  EXPECT_EQ(*repository->Prune(1), Steps{1});
  EXPECT_EQ(*ListLost(&files), Steps{});
}

TEST(IndexTest, DamagedIndexIsAnError) {
  const std::string bytes = EncodeIndex({7, 0});
  EXPECT_EQ(bytes, "penstock checkpoints 1\n7\n0\nend 38a60ebd3b17ddf1\n");
  EXPECT_EQ(*DecodeIndex(bytes), (Steps{7, 0}));
  EXPECT_EQ(*DecodeIndex(EncodeIndex({})), Steps{});
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string bad = bytes;
    bad[i] ^= 1;
    EXPECT_FALSE(DecodeIndex(bad).ok()) << bad;
    EXPECT_FALSE(DecodeIndex(bytes.substr(0, i)).ok()) << i;
  }
  EXPECT_FALSE(DecodeIndex(bytes + "x").ok());
}

// Tests a flipped bit in the full checkpoint, which makes its whole chain
// useless.
TEST_F(RepositoryTest, PruningOfAChainKeepsAnotherBase) {
  for (uint64_t step : {1, 2}) ASSERT_TRUE(Write(step).ok());
  ASSERT_TRUE(Write(3, 2).ok());
  ASSERT_TRUE(Write(4).ok());
  ASSERT_TRUE(Write(5, 4).ok());
  ASSERT_TRUE(Write(6, 5).ok());
  EXPECT_EQ(*repository_->Prune(2), Steps{1});
  EXPECT_EQ(List(), (Steps{6, 5, 4, 3, 2}));
  files_.Bytes(ShardPath(4, 0, ReadManifest(&files_, 4)->attempt.id))->back() ^=
      1;
  const auto found = FindLastGood(&files_, Thoroughness::kFull);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->chain.newest().attempt.step, 3u);
  // Expects that Prune() keeps the damaged checkpoints, because they are newer
  // than the last good one.
  EXPECT_EQ(*repository_->Prune(1), Steps{});
}

}  // namespace
}  // namespace penstock::ps::checkpoint
