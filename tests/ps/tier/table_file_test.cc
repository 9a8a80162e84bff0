// Tests table files on a failing disk: writes of the files do not fail.

#include "ps/tier/table_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <thread>

#include "absl/time/clock.h"
#include "tests/ps/tier/failing_disk.h"

namespace penstock::ps {
namespace {

namespace fs = std::filesystem;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using testing::HasSubstr;
using Kind = Shortage::Kind;

constexpr int kErrors[] = {ENOSPC, EDQUOT, EIO, EROFS, EMFILE};

Shortage::Pace Quick() {
  Shortage::Pace pace;
  pace.retry = absl::Milliseconds(1);
  return pace;
}

class TableFileTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "/table-XXXXXX";
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::unique_ptr<TableFile> Make(Kind kind) {
    return std::make_unique<TableFile>(path(), kind, &disk_, &shortage_);
  }
  std::string path() const { return folder_ + "/1.sst"; }
  std::string Content() const {
    std::ostringstream content;
    content << std::ifstream(path()).rdbuf();
    return content.str();
  }
  static void Append(TableFile* file, const std::string& data) {
    const IOStatus appended = file->Append(data, IOOptions(), nullptr);
    EXPECT_TRUE(appended.ok()) << appended.ToString();
  }
  static IOStatus Sync(TableFile* file) {
    return file->Sync(IOOptions(), nullptr);
  }
  // Makes the disk work again after some calls have failed.
  std::thread WorksLater() {
    return std::thread([this] {
      const uint64_t before = disk_.failures;
      while (disk_.failures < before + 3) std::this_thread::yield();
      EXPECT_FALSE(shortage_.status().ok());
      disk_.create = disk_.write = 0;
    });
  }

  FailingDisk disk_;
  Shortage shortage_{[] { return uint64_t{0}; }, Quick()};
  std::string folder_;
};

TEST_F(TableFileTest, HasWhatWasWritten) {
  for (const Kind kind : {Kind::kFlush, Kind::kCompaction}) {
    disk_.most = 7;
    const auto file = Make(kind);
    Append(file.get(), std::string(100, 'a'));
    Append(file.get(), "");
    Append(file.get(), std::string(5, 'b'));
    EXPECT_TRUE(file->Flush(IOOptions(), nullptr).ok());
    EXPECT_TRUE(Sync(file.get()).ok());
    EXPECT_EQ(file->GetFileSize(IOOptions(), nullptr), 105u);
    EXPECT_TRUE(file->Close(IOOptions(), nullptr).ok());
    EXPECT_EQ(Content(), std::string(100, 'a') + "bbbbb");
  }
}

TEST_F(TableFileTest, AFlushWaitsAndLosesNothing) {
  for (const int error : kErrors) {
    disk_.create = error;
    std::thread works = WorksLater();
    const auto file = Make(Kind::kFlush);
    works.join();
    disk_.most = 3;
    Append(file.get(), "before");
    disk_.write = error;
    works = WorksLater();
    Append(file.get(), "after");
    works.join();
    EXPECT_TRUE(Sync(file.get()).ok());
    EXPECT_EQ(Content(), "beforeafter");
    EXPECT_TRUE(shortage_.status().ok());
  }
}

TEST_F(TableFileTest, ACompactionGivesUpItsRoomAndSaysSoByItsSync) {
  for (const int error : kErrors) {
    disk_.write = 0;
    const auto file = Make(Kind::kCompaction);
    Append(file.get(), "before");
    disk_.write = error;
    const uint64_t failures = disk_.failures;
    for (int i = 0; i < 9; ++i) Append(file.get(), "after");
    EXPECT_EQ(disk_.failures, failures + 1) << "tries no more";
    EXPECT_EQ(Content(), "");
    EXPECT_TRUE(absl::IsResourceExhausted(shortage_.status()));
    const IOStatus synced = Sync(file.get());
    EXPECT_TRUE(synced.IsIOError() && !synced.IsNoSpace()) << synced.ToString();
    EXPECT_TRUE(synced.GetRetryable());
    EXPECT_EQ(synced.GetScope(), IOStatus::IOErrorScope::kIOErrorScopeFile);
    EXPECT_THAT(synced.ToString(), HasSubstr(path()));
    EXPECT_FALSE(file->Close(IOOptions(), nullptr).ok());
  }
  disk_.write = 0;
  const auto file = Make(Kind::kCompaction);
  EXPECT_TRUE(Sync(file.get()).ok());
  EXPECT_TRUE(shortage_.status().ok());
}

TEST_F(TableFileTest, ACompactionThatCannotMakeItsFileGivesUp) {
  disk_.create = EMFILE;
  const auto file = Make(Kind::kCompaction);
  Append(file.get(), "lost");
  EXPECT_TRUE(Sync(file.get()).GetRetryable());
}

// Tests a failed sync, which is not repeated, because the kernel may have
// dropped the bytes that it could not write.
TEST_F(TableFileTest, AFailedSyncIsNotTriedAgain) {
  for (const Kind kind : {Kind::kFlush, Kind::kCompaction}) {
    const auto file = Make(kind);
    Append(file.get(), "row");
    disk_.sync = EIO;
    EXPECT_TRUE(Sync(file.get()).GetRetryable());
    EXPECT_THAT(std::string(shortage_.status().message()),
                HasSubstr("the disk fails"));
    disk_.sync = 0;
    EXPECT_FALSE(Sync(file.get()).ok());
  }
  for (const Kind kind : {Kind::kFlush, Kind::kCompaction}) {
    EXPECT_FALSE(shortage_.status().ok());
    EXPECT_TRUE(Sync(Make(kind).get()).ok());
  }
  EXPECT_TRUE(shortage_.status().ok());
}

TEST_F(TableFileTest, AfterTheEndNothingWaitsAndNothingIsAFailure) {
  const auto file = Make(Kind::kFlush);
  disk_.write = ENOSPC;
  std::thread closes([&] {
    while (disk_.failures == 0) std::this_thread::yield();
    shortage_.Close();
  });
  Append(file.get(), "dropped");
  closes.join();
  Append(file.get(), "dropped");
  EXPECT_TRUE(Sync(file.get()).IsShutdownInProgress());
}

// Tests a disk that threads make fail and work at random.
TEST_F(TableFileTest, RandomFailuresChangeNoByte) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  std::atomic<bool> ends{false};
  std::thread trouble([&, random]() mutable {
    while (!ends) {
      disk_.write = random() % 2 == 0 ? 0 : kErrors[random() % 5];
      disk_.most = random() % 3000 + 1;
      absl::SleepFor(absl::Microseconds(random() % 300));
    }
    disk_.write = 0;
  });
  const absl::Time end = absl::Now() + absl::Seconds(1);
  while (absl::Now() < end && !HasFailure()) {
    const Kind kind = random() % 2 == 0 ? Kind::kFlush : Kind::kCompaction;
    const auto file = Make(kind);
    std::string all;
    for (uint64_t left = random() % 20; left > 0; --left) {
      const std::string data(random() % 5000, static_cast<char>(random()));
      Append(file.get(), data);
      all += data;
    }
    if (Sync(file.get()).ok()) {
      ASSERT_EQ(Content(), all);
    } else {
      ASSERT_EQ(kind, Kind::kCompaction);
      ASSERT_EQ(Content(), "");
    }
  }
  ends = true;
  trouble.join();
}

}  // namespace
}  // namespace penstock::ps
