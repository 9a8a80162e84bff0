// Tests real processes that are killed while they write, on a real file system.

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "ps/checkpoint/names.h"
#include "ps/checkpoint/posix_files.h"
#include "ps/checkpoint/repository.h"
#include "ps/checkpoint/verify.h"
#include "tests/process/child.h"
#include "tests/ps/checkpoint/trained.h"

namespace penstock::ps::checkpoint {
namespace {

// Returns a new folder on a file system in memory. Syncs to a disk would be
// slow, and make no difference to a killed process.
std::string NewRoot() {
  const std::string where =
      access("/dev/shm", W_OK) == 0 ? "/dev/shm" : testing::TempDir();
  std::string name = where + "/penstock-checkpoint-XXXXXX";
  EXPECT_NE(mkdtemp(&name[0]), nullptr);
  return name;
}

class ProcessTest : public testing::Test {
 protected:
  void SetUp() override { root_ = NewRoot(); }
  void TearDown() override { std::filesystem::remove_all(root_); }

  std::unique_ptr<process::Child> Start(long operation) {
    return process::Child::Start(
        {"tests/ps/checkpoint/trainer", root_, std::to_string(operation)});
  }

  // Expects the last good checkpoint to be the last acknowledged checkpoint, or
  // a newer one.
  void ExpectLastGood(uint64_t acknowledged) {
    auto files = OpenFolder(root_);
    ASSERT_TRUE(files.ok());
    const auto found = FindLastGood(files->get(), Thoroughness::kFull);
    if (absl::IsNotFound(found.status()) && acknowledged == 0) return;
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_TRUE(found->skipped.empty()) << found->skipped.front();
    const uint64_t step = found->chain.newest().attempt.step;
    EXPECT_GE(step, acknowledged);
    const auto world = World::Read(files->get(), found->chain, 3);
    ASSERT_TRUE(world.ok()) << world.status();
    EXPECT_TRUE(*world == Trained(step));
  }

  // Expects that the folder contains only checkpoints, and that one more can be
  // written.
  void ExpectTheNextRunWorks() {
    auto files = OpenFolder(root_);
    auto repository = Repository::Open(files->get());
    ASSERT_TRUE(repository.ok()) << repository.status();
    const auto steps = ListSteps(files->get());
    size_t entries = 0;
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(root_)) {
      const std::string name = entry.path().filename();
      entries += name == kLockName || name == kIndexName ? 0 : 1;
    }
    EXPECT_EQ(entries, steps->size() * 4);  // folder, manifest, two shards
    ASSERT_TRUE(World().Write(files->get(), repository->get(), 100, 2).ok());
  }

  std::string root_;
};

uint64_t LastDone(const std::string& output) {
  const size_t at = output.rfind("done ");
  return at == std::string::npos ? 0 : output[at + 5] - '0';
}

TEST_F(ProcessTest, AKillAtAnyOperationLeavesTheLastGoodCheckpoint) {
  auto trainer = Start(-1);
  const auto all = trainer->Find("operations ");
  ASSERT_TRUE(all.has_value());
  long operations = 0;
  ASSERT_TRUE(absl::SimpleAtoi(*all, &operations));
  ASSERT_GT(operations, 100);
  EXPECT_EQ(trainer->Finish(), 0);
  ExpectLastGood(kTrainedSteps);
  for (long i = 0; i < operations; ++i) {
    SCOPED_TRACE(absl::StrCat("killed at ", i));
    TearDown();
    SetUp();
    trainer = Start(i);
    const std::string output = trainer->ReadAll();
    EXPECT_EQ(trainer->Finish(), -1) << output;
    ExpectLastGood(LastDone(output));
    ExpectTheNextRunWorks();
    if (HasFailure()) return;
  }
}

TEST_F(ProcessTest, ARootHasOneWriterAmongProcesses) {
  auto files = OpenFolder(root_);
  const auto repository = Repository::Open(files->get());
  ASSERT_TRUE(repository.ok());
  auto trainer = Start(-1);
  const auto failure = trainer->Find("failed ");
  ASSERT_TRUE(failure.has_value());
  EXPECT_NE(failure->find("another process writes checkpoints"),
            std::string::npos)
      << *failure;
}

}  // namespace
}  // namespace penstock::ps::checkpoint
