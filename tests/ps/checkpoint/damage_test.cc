// Tests files that are damaged, truncated, missing, newer or malicious.

#include <gtest/gtest.h>

#include <cerrno>
#include <map>
#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ps/checkpoint/little_endian.h"
#include "ps/checkpoint/names.h"
#include "ps/checkpoint/repository.h"
#include "ps/checkpoint/verify.h"
#include "tensor_service/checksum.h"
#include "tests/ps/checkpoint/memory_files.h"
#include "tests/ps/checkpoint/world.h"

namespace penstock::ps::checkpoint {
namespace {

using testing::Test;

// Tests of damaged checkpoints. Step 1 is full, step 2 is incremental on step
// 1, and step 3 is full.
class DamageTest : public Test {
 protected:
  void SetUp() override {
    auto repository = Repository::Open(&files_);
    ASSERT_TRUE(repository.ok());
    for (uint64_t step = 1; step <= 3; ++step) {
      absl::optional<uint64_t> base;
      if (step == 2) base = 1;
      ASSERT_TRUE(world_.Write(&files_, repository->get(), step, 2, base).ok());
      written_.emplace(step, world_);
      world_.Clean();
      world_.Change();
    }
    whole_ = files_.Contents();
  }

  std::string Shard(uint64_t step, uint32_t shard) {
    return ShardPath(step, shard, ReadManifest(&files_, step)->attempt.id);
  }

  bool IsGood(uint64_t step) {
    const auto found = Verify(&files_, step);
    return found.ok() && found->damaged == 0;
  }

  uint64_t LastGood() {
    const auto found = FindLastGood(&files_, Thoroughness::kFull);
    return found.ok() ? found->chain.newest().attempt.step : 0;
  }

  void Restore(const std::string& path) { *files_.Bytes(path) = whole_[path]; }

  MemoryFiles files_;
  World world_{/*seed=*/3, /*large_rows=*/6};
  std::map<uint64_t, World> written_;
  std::map<std::string, std::string> whole_;
};

TEST_F(DamageTest, ABitThatFlipsAnywhereIsFound) {
  ASSERT_TRUE(IsGood(2));
  for (const auto& [path, bytes] : whole_) {
    if (!absl::StartsWith(path, "step-") ||
        absl::StartsWith(path, StepFolder(3))) {
      continue;
    }
    std::string* const file = files_.Bytes(path);
    for (size_t at = 0; at < bytes.size(); ++at) {
      (*file)[at] = static_cast<char>((*file)[at] ^ (1 << at % 8));
      const auto found = Verify(&files_, 2);
      ASSERT_TRUE(found.ok()) << path << " " << at << ": " << found.status();
      ASSERT_GT(found->damaged, 0u) << path << " " << at;
      (*file)[at] = bytes[at];
    }
  }
  EXPECT_TRUE(IsGood(2));
}

TEST_F(DamageTest, AFileThatIsCutOrGrewIsFound) {
  for (const auto& [path, bytes] : whole_) {
    if (!absl::StartsWith(path, "step-")) continue;
    const uint64_t step = *ParseStepFolder(path.substr(0, path.find('/')));
    for (size_t size = 0; size < bytes.size(); size += 1 + size / 50) {
      *files_.Bytes(path) = bytes.substr(0, size);
      ASSERT_FALSE(IsGood(step)) << path << " " << size;
    }
    *files_.Bytes(path) = bytes + "x";
    ASSERT_FALSE(IsGood(step)) << path;
    Restore(path);
  }
}

TEST_F(DamageTest, DamageIsToldByTableAndBlockAndTheSearchGoesOn) {
  std::string* const file = files_.Bytes(Shard(3, 1));
  (*file)[kFileHeaderBytes + kBlockHeaderBytes + 2] ^= 1;
  const std::string last_word = whole_[Shard(3, 1)];
  const Footer footer = OpenChain(&files_, 3)->links[0].footers[1];
  const Part& last = footer.parts.back();
  (*file)[last.offset + last.bytes - 1] ^= 1;
  const auto found = Verify(&files_, 3);
  ASSERT_TRUE(found.ok());
  ASSERT_EQ(found->damaged, 2u);
  EXPECT_EQ(found->damages[0].table, "large");
  EXPECT_EQ(found->damages[0].block, 1u);
  EXPECT_EQ(found->damages[1].table, "words");
  EXPECT_TRUE(absl::StrContains(
      found->damages[0].what,
      absl::StrCat(Shard(3, 1), ": block 1 of 3 of table 'large'")))
      << found->damages[0].what;
}

// Tests a temporary error of the disk. The newest checkpoint may still be good.
// A retention policy that took an older one for the last good checkpoint would
// remove a good checkpoint.
TEST_F(DamageTest, AnErrorOfTheDiskIsNoDamage) {
  for (const int error : {EIO, ESTALE, ETIMEDOUT, EACCES}) {
    SCOPED_TRACE(error);
    bool failed = true;
    int operation = 0;
    for (; failed; ++operation) {
      ASSERT_LT(operation, 10000);
      files_.FailOnce(files_.operations() + operation,
                      absl::ErrnoToStatus(error, "read"));
      const auto found = FindLastGood(&files_, Thoroughness::kFull);
      failed = !found.ok();
      if (!failed) {
        EXPECT_EQ(found->chain.newest().attempt.step, 3u);
        EXPECT_TRUE(found->skipped.empty()) << found->skipped.front();
      } else {
        EXPECT_EQ(found.status().code(), absl::ErrnoToStatusCode(error))
            << found.status();
      }
    }
    EXPECT_GT(operation, 10);
  }
  files_.FailOnce(-1, absl::OkStatus());
  EXPECT_EQ(LastGood(), 3u);
}

TEST_F(DamageTest, TheLastGoodOneIsFoundBehindDamagedOnes) {
  EXPECT_EQ(LastGood(), 3u);
  (*files_.Bytes(Shard(3, 0)))[100] ^= 1;
  auto found = FindLastGood(&files_, Thoroughness::kFull);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->chain.newest().attempt.step, 2u);
  ASSERT_EQ(found->skipped.size(), 1u);
  EXPECT_TRUE(absl::IsDataLoss(found->skipped[0])) << found->skipped[0];
  EXPECT_TRUE(*World::Read(&files_, found->chain, 1) == written_.at(2));
  // Damages the base of a chain, which makes the chain useless.
  (*files_.Bytes(Shard(1, 0)))[100] ^= 1;
  const auto none = FindLastGood(&files_, Thoroughness::kFull);
  EXPECT_TRUE(absl::IsDataLoss(none.status())) << none.status();
  EXPECT_TRUE(absl::StrContains(none.status().message(), "all 3"));
}

TEST_F(DamageTest, ARestoreThatMeetsDamageReturnsItAndGivesNoneOfIt) {
  const auto chain = OpenChain(&files_, 3);
  (*files_.Bytes(Shard(3, 0)))[100] ^= 1;
  const auto world = World::Read(&files_, *chain, 2);
  EXPECT_TRUE(absl::IsDataLoss(world.status())) << world.status();
}

TEST_F(DamageTest, AMissingShardIsNamed) {
  const std::string path = Shard(3, 1);
  ASSERT_TRUE(files_.Remove(path).ok());
  const auto found = FindLastGood(&files_, Thoroughness::kQuick);
  ASSERT_TRUE(found.ok());
  EXPECT_TRUE(absl::StrContains(found->skipped[0].message(), path));
  EXPECT_TRUE(absl::StrContains(found->skipped[0].message(), "missing"));
  EXPECT_FALSE(IsGood(3));
}

TEST_F(DamageTest, AMissingBaseIsNamed) {
  ASSERT_TRUE(files_.Remove(ManifestPath(1)).ok());
  const auto chain = OpenChain(&files_, 2);
  EXPECT_TRUE(absl::IsDataLoss(chain.status()));
  EXPECT_EQ(chain.status().message(),
            "step-0000000002 needs step-0000000001: it is missing");
}

TEST_F(DamageTest, ABaseThatWasWrittenAnewIsNoBase) {
  auto repository = Repository::Open(&files_);
  ASSERT_TRUE(files_.Remove(ManifestPath(1)).ok());
  ASSERT_TRUE(world_.Write(&files_, repository->get(), 1, 2).ok());
  EXPECT_TRUE(absl::IsDataLoss(OpenChain(&files_, 2).status()));
}

TEST_F(DamageTest, ShardsOfTwoServersThatWereSwappedAreFound) {
  std::swap(*files_.Bytes(Shard(3, 0)), *files_.Bytes(Shard(3, 1)));
  EXPECT_FALSE(IsGood(3));
  EXPECT_TRUE(absl::IsDataLoss(OpenChain(&files_, 3).status()));
}

// Returns a manifest with another version and a matching checksum.
std::string WithVersion(std::string bytes, char version) {
  bytes[8] = version;
  std::string sum;
  Put(Digest(tensor::ChecksumOf(bytes.substr(kManifestHeaderBytes)),
             bytes.substr(0, 16)),
      &sum);
  return bytes.replace(16, 8, sum);
}

TEST_F(DamageTest, ANewerFormatIsAnErrorAndNotPassedOver) {
  *files_.Bytes(ManifestPath(3)) = WithVersion(whole_[ManifestPath(3)], 2);
  for (Thoroughness each : {Thoroughness::kQuick, Thoroughness::kFull}) {
    const absl::Status status = FindLastGood(&files_, each).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), "version 2"));
  }
  EXPECT_TRUE(absl::IsFailedPrecondition(Verify(&files_, 3).status()));
  *files_.Bytes(ManifestPath(3)) = WithVersion(whole_[ManifestPath(3)], 1);
  EXPECT_TRUE(IsGood(3));
}

TEST_F(DamageTest, AShardOfANewerFormatIsRefused) {
  std::string* const file = files_.Bytes(Shard(3, 0));
  (*file)[8] = 2;
  std::string sum;
  Put(tensor::ChecksumOf(file->substr(0, kFileHeaderBytes - 8)), &sum);
  file->replace(kFileHeaderBytes - 8, 8, sum);
  EXPECT_TRUE(absl::IsFailedPrecondition(OpenChain(&files_, 3).status()));
}

TEST_F(DamageTest, NoCheckpointIsNotFound) {
  MemoryFiles empty;
  EXPECT_TRUE(
      absl::IsNotFound(FindLastGood(&empty, Thoroughness::kFull).status()));
  EXPECT_TRUE(absl::IsNotFound(Verify(&empty, 1).status()));
  EXPECT_TRUE(absl::IsNotFound(OpenChain(&empty, 1).status()));
}

TEST_F(DamageTest, ManifestsThatMakeNoSenseAreRefused) {
  const Manifest good = *ReadManifest(&files_, 2);
  const auto refused = [&](void (*change)(Manifest*)) {
    Manifest bad = good;
    change(&bad);
    *files_.Bytes(ManifestPath(2)) = *Encode(bad);
    const absl::Status status = OpenChain(&files_, 2).status();
    return absl::IsDataLoss(status);
  };
  EXPECT_FALSE(refused([](Manifest*) {}));
  EXPECT_TRUE(refused([](Manifest* m) { m->attempt.step = 9; }));
  EXPECT_TRUE(refused([](Manifest* m) { m->shards.clear(); }));
  EXPECT_TRUE(refused([](Manifest* m) { m->shards[0].bytes = UINT64_MAX; }));
  EXPECT_TRUE(refused([](Manifest* m) { m->shards[0].bytes = 0; }));
  EXPECT_TRUE(refused([](Manifest* m) { m->depth = 2; }));
  EXPECT_TRUE(refused([](Manifest* m) { m->depth = 0; }));
  EXPECT_TRUE(refused([](Manifest* m) { m->depth = UINT32_MAX; }));
  EXPECT_TRUE(refused([](Manifest* m) { m->base->step = 2; }));
  EXPECT_TRUE(refused([](Manifest* m) { m->base->step = 3; }));
  EXPECT_TRUE(refused([](Manifest* m) { m->base.reset(); }));
  EXPECT_TRUE(refused([](Manifest* m) { m->placement_epoch = 4; }));
  EXPECT_TRUE(refused([](Manifest* m) { m->model.tables.pop_back(); }));
  EXPECT_TRUE(refused(
      [](Manifest* m) { m->model.tables[0].name = m->model.tables[1].name; }));
  EXPECT_TRUE(refused([](Manifest* m) {
    m->model.tables[0].shape = {INT64_MAX, INT64_MAX, INT64_MAX, 0};
  }));
  EXPECT_TRUE(refused([](Manifest* m) { m->model.tables[0].shape = {-1}; }));
  EXPECT_TRUE(refused([](Manifest* m) {
    m->model.tables[0].dtype = static_cast<tensor::DType>(99);
  }));
  EXPECT_TRUE(refused([](Manifest* m) {
    m->model.tables[0].kind = static_cast<TableKind>(0);
  }));
  EXPECT_TRUE(refused(
      [](Manifest* m) { m->model.tables[2].shape = {int64_t{1} << 40}; }));
}

TEST_F(DamageTest, AManifestOfGigabytesIsNotRead) {
  *files_.Bytes(ManifestPath(3)) = std::string(kMaxManifestBytes + 1, 'x');
  const int before = files_.operations();
  EXPECT_TRUE(absl::IsDataLoss(ReadManifest(&files_, 3).status()));
  EXPECT_EQ(files_.operations(), before + 1);  // only opened the file
}

TEST_F(DamageTest, AVerificationCanBeCancelledAndTellsItsProgress) {
  uint64_t last = 0;
  uint64_t all = 0;
  const auto found = Verify(&files_, 2, [&](uint64_t done, uint64_t total) {
    EXPECT_GE(done, last);
    EXPECT_LE(done, total);
    last = done;
    all = total;
    return true;
  });
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->checkpoints, 2u);
  EXPECT_EQ(last, all);
  EXPECT_EQ(found->bytes, all);
  EXPECT_TRUE(absl::IsCancelled(
      Verify(&files_, 2, [](uint64_t, uint64_t) { return false; }).status()));
  EXPECT_TRUE(absl::IsCancelled(
      FindLastGood(&files_, Thoroughness::kFull, [](uint64_t, uint64_t) {
        return false;
      }).status()));
}

}  // namespace
}  // namespace penstock::ps::checkpoint
