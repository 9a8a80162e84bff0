#include "ps/checkpoint/posix_files.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ps/checkpoint/names.h"
#include "ps/checkpoint/repository.h"
#include "ps/checkpoint/verify.h"
#include "tests/ps/checkpoint/world.h"

namespace penstock::ps::checkpoint {
namespace {

namespace fs = std::filesystem;

class PosixFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = testing::TempDir() + "/root-XXXXXX";
    ASSERT_NE(mkdtemp(&root_[0]), nullptr);
    files_ = *OpenFolder(root_);
  }
  void TearDown() override { fs::remove_all(root_); }

  void WriteCheckpoint(uint64_t step) {
    auto repository = Repository::Open(files_.get());
    ASSERT_TRUE(repository.ok());
    ASSERT_TRUE(world_.Write(files_.get(), repository->get(), step, 1).ok());
  }

  std::string root_;
  std::unique_ptr<Files> files_;
  World world_;
};

TEST_F(PosixFilesTest, ErrorsNameTheOperationAndThePath) {
  EXPECT_EQ(files_->Open("step/none").status(),
            absl::NotFoundError("open step: No such file or directory"));
  EXPECT_TRUE(absl::IsNotFound(files_->Open("none").status()));
  EXPECT_TRUE(absl::IsNotFound(files_->List("none").status()));
  ASSERT_TRUE(files_->Create("file").ok());
  EXPECT_TRUE(absl::IsAlreadyExists(files_->Create("file").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(files_->Remove("a/b/c")) ||
              absl::IsNotFound(files_->Remove("a/b/c")));
  EXPECT_FALSE(OpenFolder(root_ + "/none").ok());
  EXPECT_FALSE(OpenFolder(root_ + "/file").ok());
}

TEST_F(PosixFilesTest, ALinkIsNotFollowedWhereverItLeads) {
  WriteCheckpoint(1);
  const std::string manifest = root_ + "/" + ManifestPath(1);
  fs::rename(manifest, root_ + "/elsewhere");
  fs::create_symlink(root_ + "/elsewhere", manifest);
  absl::Status status =
      FindLastGood(files_.get(), Thoroughness::kFull).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "symbolic link")) << status;
  fs::remove(manifest);
  fs::rename(root_ + "/elsewhere", manifest);
  ASSERT_TRUE(FindLastGood(files_.get(), Thoroughness::kFull).ok());
  // Replaces a shard by a link.
  const std::string shard =
      root_ + "/" + ShardPath(1, 0, ReadManifest(files_.get(), 1)->attempt.id);
  fs::rename(shard, root_ + "/elsewhere");
  fs::create_symlink("../elsewhere", shard);
  status = OpenChain(files_.get(), 1).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  // Replaces the newer of two good folders by a link.
  fs::remove(shard);
  fs::rename(root_ + "/elsewhere", shard);
  fs::create_directory_symlink(StepFolder(1), root_ + "/" + StepFolder(2));
  status = FindLastGood(files_.get(), Thoroughness::kQuick).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
}

TEST_F(PosixFilesTest, ALinkIsRemovedAndNotWhatItNames) {
  std::ofstream(root_ + "/precious") << "text";
  fs::create_directory(root_ + "/step");
  fs::create_symlink("../precious", root_ + "/step/shard-1");
  ASSERT_TRUE(files_->Remove("step/shard-1").ok());
  EXPECT_TRUE(fs::exists(root_ + "/precious"));
}

TEST_F(PosixFilesTest, APipeIsRefusedAndNotWaitedFor) {
  ASSERT_EQ(mkfifo((root_ + "/pipe").c_str(), 0600), 0);
  const absl::Status status = files_->Open("pipe").status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  fs::create_directory(root_ + "/folder");
  EXPECT_FALSE(files_->Open("folder").ok());
}

TEST_F(PosixFilesTest, ALockIsOnesUntilItIsLetGo) {
  auto lock = files_->Lock("lock");
  ASSERT_TRUE(lock.ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(files_->Lock("lock").status()));
  lock->reset();
  EXPECT_TRUE(files_->Lock("lock").ok());
}

TEST_F(PosixFilesTest, NobodyElseMayReadWhatIsWritten) {
  WriteCheckpoint(1);
  for (const auto& entry : fs::recursive_directory_iterator(root_)) {
    EXPECT_EQ(fs::status(entry).permissions() &
                  (fs::perms::group_all | fs::perms::others_all),
              fs::perms::none)
        << entry.path();
  }
}

TEST_F(PosixFilesTest, NamesOfTablesAreNoNamesOfFiles) {
  WriteCheckpoint(1);
  for (const auto& entry : fs::recursive_directory_iterator(root_)) {
    const std::string name = entry.path().filename();
    EXPECT_TRUE(name == "lock" || name == "index" || name == "manifest" ||
                absl::StartsWith(name, "step-") ||
                absl::StartsWith(name, "shard-"))
        << name;
  }
}

void WriteText(const std::string& path, const std::string& text) {
  std::ofstream(path) << text;
}

// Gives this process its own mounts. A user other than root needs a user
// namespace for that, which a host may forbid.
bool HasOwnMounts() {
  const int user = static_cast<int>(getuid());
  if (unshare(CLONE_NEWNS) != 0) {
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
    WriteText("/proc/self/setgroups", "deny");
    WriteText("/proc/self/uid_map", absl::StrCat("0 ", user, " 1"));
  }
  return mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
}

TEST_F(PosixFilesTest, LockWhoseFileWasRemovedIsNoticed) {
  auto lock = files_->Lock("lock");
  ASSERT_TRUE(lock.ok()) << lock.status();
  EXPECT_TRUE((*lock)->Check().ok());
  fs::remove(root_ + "/lock");
  EXPECT_TRUE(files_->Lock("lock").ok());
  const absl::Status status = (*lock)->Check();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "was removed")) << status;
}

TEST_F(PosixFilesTest, FolderThatWasMadeAgainIsUsed) {
  auto lock = files_->Lock("lock");
  ASSERT_TRUE(lock.ok()) << lock.status();
  for (const bool is_moved : {false, true}) {
    ASSERT_TRUE((*lock)->Check().ok());
    if (is_moved) {
      fs::rename(root_, root_ + "-moved");
    } else {
      fs::remove_all(root_);
    }
    for (const absl::Status& gone :
         {(*lock)->Check(), files_->List("").status(),
          files_->Open("step/manifest").status()}) {
      EXPECT_TRUE(absl::IsFailedPrecondition(gone)) << gone;
      EXPECT_TRUE(absl::StrContains(gone.message(), "is gone")) << gone;
    }
    fs::create_directory(root_);
    EXPECT_TRUE(absl::IsFailedPrecondition((*lock)->Check()));
    lock = files_->Lock("lock");
    ASSERT_TRUE(lock.ok()) << lock.status();
    WriteText(root_ + "/file", "text");
    EXPECT_TRUE(files_->Open("file").ok());
  }
  fs::remove_all(root_ + "-moved");
}

// Tests a full disk. Must run last, because its mounts stay until the process
// ends.
TEST_F(PosixFilesTest, ZAFullDiskIsSaidAndTheLastCheckpointStays) {
  const std::string disk = root_ + "/disk";
  fs::create_directory(disk);
  if (!HasOwnMounts() ||
      mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=4m") != 0) {
    std::cout << "SKIPPED: no mount namespace here: no full disk was tried\n";
    GTEST_SKIP() << "unshare or mount is not permitted";
  }
  auto files = OpenFolder(disk);
  auto repository = Repository::Open(files->get());
  ASSERT_TRUE(repository.ok());
  const World small(/*seed=*/1, /*large_rows=*/10'000);  // 840 kB
  const World large(/*seed=*/2, /*large_rows=*/50'000);  // 4.2 MB
  ASSERT_TRUE(small.Write(files->get(), repository->get(), 1, 1).ok());
  const auto free_before = fs::space(disk).available;
  absl::Status status = large.Write(files->get(), repository->get(), 2, 1);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "full")) << status;
  EXPECT_EQ(fs::space(disk).available, free_before);
  const auto found = FindLastGood(files->get(), Thoroughness::kFull);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->chain.newest().attempt.step, 1u);
  EXPECT_TRUE(*World::Read(files->get(), found->chain, 2) == small);
  ASSERT_TRUE(small.Write(files->get(), repository->get(), 3, 2).ok());
  // Fills the disk: even the smallest file cannot be written.
  const std::string rest(fs::space(disk).available, 'x');
  WriteText(disk + "/fill", rest);
  status = small.Write(files->get(), repository->get(), 4, 2);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_EQ(*ListSteps(files->get()), (std::vector<uint64_t>{3, 1}));
  fs::remove(disk + "/fill");
  EXPECT_TRUE(small.Write(files->get(), repository->get(), 4, 2).ok());
  repository->reset();
  files->reset();
  EXPECT_EQ(umount2(disk.c_str(), MNT_DETACH), 0);
}

}  // namespace
}  // namespace penstock::ps::checkpoint
