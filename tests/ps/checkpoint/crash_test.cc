// Tests a kill, a power loss or an error at every single operation of writing
// checkpoints.

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ps/checkpoint/index.h"
#include "ps/checkpoint/names.h"
#include "ps/checkpoint/repository.h"
#include "ps/checkpoint/verify.h"
#include "tests/ps/checkpoint/memory_files.h"
#include "tests/ps/checkpoint/world.h"

namespace penstock::ps::checkpoint {
namespace {

constexpr size_t kServers = 2;

// The checkpoints' contents by step, and the last acknowledged step.
struct History {
  std::map<uint64_t, World> written;
  uint64_t acknowledged = 0;
};

// Runs a training: writes full and incremental checkpoints, and prunes old
// ones. Continues after an error, as servers do.
void Train(Files* files, History* history) {
  auto repository = Repository::Open(files);
  // Open the folder again after an error, as servers do after a temporary
  // failure of the file system.
  if (!repository.ok()) repository = Repository::Open(files);
  if (!repository.ok()) return;
  World world;
  absl::optional<uint64_t> base;
  for (uint64_t step = 1; step <= 5; ++step) {
    if (step == 4) base.reset();
    history->written.erase(step);
    history->written.emplace(step, world);
    if (world.Write(files, repository->get(), step, kServers, base).ok()) {
      history->acknowledged = step;
      base = step;
      world.Clean();
    }
    world.Change();
    (*repository)->Prune(2).IgnoreError();
  }
}

int OperationsOfARun() {
  MemoryFiles files;
  History history;
  Train(&files, &history);
  EXPECT_EQ(history.acknowledged, 5u);
  return files.operations();
}

// Expects that the last good checkpoint is complete, and no older than the last
// acknowledged one.
void ExpectLastGood(MemoryFiles* files, const History& history) {
  const auto found = FindLastGood(files, Thoroughness::kFull);
  if (absl::IsNotFound(found.status())) {
    EXPECT_EQ(history.acknowledged, 0u);
    return;
  }
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_TRUE(found->skipped.empty()) << found->skipped.front();
  const uint64_t step = found->chain.newest().attempt.step;
  EXPECT_GE(step, history.acknowledged);
  const auto world = World::Read(files, found->chain, 3);
  ASSERT_TRUE(world.ok()) << world.status();
  EXPECT_TRUE(*world == history.written.at(step)) << "step " << step;
}

// Expects that all checkpoints in the folder are complete.
void ExpectClean(MemoryFiles* files) {
  std::set<std::string> expected = {kLockName};
  if (files->Contents().count(kIndexName) > 0) expected.insert(kIndexName);
  const auto steps = ListSteps(files);
  ASSERT_TRUE(steps.ok());
  for (uint64_t step : *steps) {
    const auto manifest = ReadManifest(files, step);
    ASSERT_TRUE(manifest.ok()) << manifest.status();
    expected.insert(ManifestPath(step));
    for (const ShardInfo& shard : manifest->shards) {
      expected.insert(ShardPath(step, shard.shard, manifest->attempt.id));
    }
  }
  for (const auto& file : files->Contents()) {
    EXPECT_EQ(expected.erase(file.first), 1u) << file.first << " is left";
  }
  EXPECT_TRUE(expected.empty()) << *expected.begin() << " is missing";
}

void ExpectTheNextRunWorks(MemoryFiles* files) {
  auto repository = Repository::Open(files);
  ASSERT_TRUE(repository.ok()) << repository.status();
  ExpectClean(files);
  const auto lost = ListLost(files);
  ASSERT_TRUE(lost.ok()) << lost.status();
  EXPECT_TRUE(lost->empty()) << lost->front() << " looks lost";
  World world(/*seed=*/9);
  const absl::Status status =
      world.Write(files, repository->get(), 6, kServers);
  ASSERT_TRUE(status.ok()) << status;
  const auto found = FindLastGood(files, Thoroughness::kFull);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->chain.newest().attempt.step, 6u);
}

class CrashTest : public testing::TestWithParam<Loss> {};

TEST_P(CrashTest, ACrashAtAnyOperationLeavesTheLastGoodCheckpoint) {
  const int operations = OperationsOfARun();
  ASSERT_GT(operations, 200);
  const unsigned seeds = GetParam() == Loss::kSome ? 3 : 1;
  for (int i = 0; i < operations; ++i) {
    for (unsigned seed = 0; seed < seeds; ++seed) {
      SCOPED_TRACE(absl::StrCat("crash at ", i, ", seed ", seed));
      MemoryFiles files;
      files.CrashAt(i);
      History history;
      Train(&files, &history);
      files.Restart(GetParam(), seed);
      ExpectLastGood(&files, history);
      ExpectTheNextRunWorks(&files);
      if (HasFailure()) return;
    }
  }
}

// Tests that a kill during the cleanup after an earlier kill loses nothing.
TEST_P(CrashTest, ACrashWhileLeftoversAreRemovedLosesNothing) {
  const int operations = OperationsOfARun();
  for (int i = 0; i < operations; i += 23) {
    for (int again = 0; again < 20; ++again) {
      SCOPED_TRACE(absl::StrCat("crashes at ", i, " and ", again));
      MemoryFiles files;
      files.CrashAt(i);
      History history;
      Train(&files, &history);
      files.Restart(GetParam(), 1);
      files.CrashAt(files.operations() + again);
      Repository::Open(&files).status().IgnoreError();
      files.Restart(GetParam(), 2);
      ExpectLastGood(&files, history);
      ExpectTheNextRunWorks(&files);
      if (HasFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Losses, CrashTest,
                         testing::Values(Loss::kNothing, Loss::kAllUnsynced,
                                         Loss::kUnsyncedData, Loss::kSome),
                         [](const testing::TestParamInfo<Loss>& info)
                             -> std::string {
                           switch (info.param) {
                             case Loss::kNothing:
                               return "KilledProcess";
                             case Loss::kAllUnsynced:
                               return "PowerLostBeforeWriteBack";
                             case Loss::kUnsyncedData:
                               return "PowerLostAfterNames";
                             case Loss::kSome:
                               return "PowerLostInBetween";
                           }
                           return "";
                         });

class FailureTest : public testing::TestWithParam<absl::StatusCode> {};

// Tests an error of each operation. The error loses at most one checkpoint, and
// the run continues.
TEST_P(FailureTest, AnyOperationMayFail) {
  const int operations = OperationsOfARun();
  for (int i = 0; i < operations; ++i) {
    SCOPED_TRACE(absl::StrCat("operation ", i, " fails"));
    MemoryFiles files;
    files.FailOnce(i, absl::Status(GetParam(), "injected"));
    History history;
    Train(&files, &history);
    EXPECT_GE(history.acknowledged, 4u);
    ExpectLastGood(&files, history);
    ExpectTheNextRunWorks(&files);
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Errors, FailureTest,
    testing::Values(absl::StatusCode::kResourceExhausted,
                    absl::StatusCode::kInternal, absl::StatusCode::kNotFound,
                    absl::StatusCode::kPermissionDenied),
    [](const testing::TestParamInfo<absl::StatusCode>& info) {
      return std::string(absl::StatusCodeToString(info.param));
    });

TEST(ShortWriteTest, WritesAndReadsMayTakeAFewBytesAtATime) {
  for (size_t most : {1, 3, 61, 1000}) {
    MemoryFiles files;
    files.SetMostAtOnce(most);
    History history;
    Train(&files, &history);
    EXPECT_EQ(history.acknowledged, 5u);
    ExpectLastGood(&files, history);
  }
}

TEST(WriterTest, TheErrorIsTheFirstAndNamesTheCause) {
  MemoryFiles files;
  auto repository = Repository::Open(&files);
  ASSERT_TRUE(repository.ok());
  const int before = files.operations();
  files.FailOnce(before + 5, absl::ResourceExhaustedError("disk full"));
  const absl::Status status =
      World().Write(&files, repository->get(), 1, kServers);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_EQ(status.message(), "disk full");
  // Expects that the partial files are removed: otherwise the disk would stay
  // full.
  EXPECT_EQ(files.Contents().size(), 1u);
}

}  // namespace
}  // namespace penstock::ps::checkpoint
