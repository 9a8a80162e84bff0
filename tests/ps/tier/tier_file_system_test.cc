// Tests the failures that TierFileSystem reports to RocksDB, except failures of
// tables.

#include "ps/tier/tier_file_system.h"

#include <gtest/gtest.h>
#include <rocksdb/listener.h>
#include <stdlib.h>

#include <cerrno>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "tests/ps/tier/failing_disk.h"

namespace penstock::ps {
namespace {

namespace fs = std::filesystem;
using rocksdb::FileOptions;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

class FailingFile : public rocksdb::FSWritableFile {
 public:
  using FSWritableFile::Append;
  IOStatus Append(const Slice&, const IOOptions&, IODebugContext*) override {
    ++appended;
    return IOStatus::NoSpace();
  }
  IOStatus Close(const IOOptions&, IODebugContext*) override {
    return IOStatus::IOError("close");
  }
  IOStatus Flush(const IOOptions&, IODebugContext*) override {
    return IOStatus::IOError("flush");
  }
  IOStatus Sync(const IOOptions&, IODebugContext*) override {
    return IOStatus::IOError("sync");
  }

  static int appended;
};

int FailingFile::appended = 0;

class UnreadableFile : public rocksdb::FSRandomAccessFile {
 public:
  IOStatus Read(uint64_t, size_t, const IOOptions&, Slice*, char*,
                IODebugContext*) const override {
    return IOStatus::IOError("read");
  }
};

// A file system whose files always fail.
class FailingKernel : public rocksdb::FileSystemWrapper {
 public:
  FailingKernel() : FileSystemWrapper(FileSystem::Default()) {}
  const char* Name() const override { return "FailingKernel"; }
  IOStatus NewWritableFile(const std::string&, const FileOptions&,
                           std::unique_ptr<rocksdb::FSWritableFile>* file,
                           IODebugContext*) override {
    *file = std::make_unique<FailingFile>();
    return IOStatus::OK();
  }
  IOStatus NewRandomAccessFile(
      const std::string& path, const FileOptions&,
      std::unique_ptr<rocksdb::FSRandomAccessFile>* file,
      IODebugContext*) override {
    if (path == "none") return IOStatus::IOError("Too many open files");
    *file = std::make_unique<UnreadableFile>();
    return IOStatus::OK();
  }
};

class TierFileSystemTest : public testing::Test {
 protected:
  std::unique_ptr<rocksdb::FSWritableFile> Make(const std::string& path) {
    std::unique_ptr<rocksdb::FSWritableFile> file;
    EXPECT_TRUE(
        files_.NewWritableFile(path, FileOptions(), &file, nullptr).ok());
    return file;
  }
  static bool Append(rocksdb::FSWritableFile* file) {
    return file->Append("data", IOOptions(), nullptr).ok();
  }
  void Announce(const std::string& path,
                rocksdb::TableFileCreationReason reason) {
    rocksdb::TableFileCreationBriefInfo table;
    table.file_path = path;
    table.reason = reason;
    files_.listener()->OnTableFileCreationStarted(table);
  }

  FailingDisk disk_;
  Shortage shortage_{[] { return uint64_t{0}; }};
  TierFileSystem files_{&disk_, &shortage_, std::make_shared<FailingKernel>()};
};

TEST_F(TierFileSystemTest, AFileReportsItsFailureByItsSyncWhileOneOpens) {
  FailingFile::appended = 0;
  const auto file = Make("MANIFEST-1");
  for (int i = 0; i < 9; ++i) EXPECT_TRUE(Append(file.get()));
  EXPECT_EQ(FailingFile::appended, 1) << "nothing is written after it";
  EXPECT_TRUE(file->Flush(IOOptions(), nullptr).ok());
  EXPECT_TRUE(file->Sync(IOOptions(), nullptr).IsNoSpace());
  EXPECT_TRUE(file->Fsync(IOOptions(), nullptr).IsNoSpace());
  EXPECT_TRUE(file->Close(IOOptions(), nullptr).IsNoSpace());
}

TEST_F(TierFileSystemTest, AFileThatNobodyWillReadDoesNotFail) {
  const auto before = Make("MANIFEST-1");
  files_.OnOpened();
  const auto after = Make("MANIFEST-2");
  for (rocksdb::FSWritableFile* file : {before.get(), after.get()}) {
    EXPECT_TRUE(Append(file));
    EXPECT_TRUE(file->Flush(IOOptions(), nullptr).ok());
    EXPECT_TRUE(file->Sync(IOOptions(), nullptr).ok());
    EXPECT_TRUE(file->Close(IOOptions(), nullptr).ok());
  }
  std::unique_ptr<rocksdb::FSDirectory> folder;
  EXPECT_TRUE(files_.NewDirectory("/", IOOptions(), &folder, nullptr).ok());
  EXPECT_TRUE(folder->Fsync(IOOptions(), nullptr).ok());
}

TEST_F(TierFileSystemTest, AFailedReadIsWorthAnotherTry) {
  std::unique_ptr<rocksdb::FSRandomAccessFile> file;
  IOStatus status =
      files_.NewRandomAccessFile("none", FileOptions(), &file, nullptr);
  EXPECT_TRUE(status.IsIOError() && status.GetRetryable());
  EXPECT_TRUE(
      files_.NewRandomAccessFile("1.sst", FileOptions(), &file, nullptr).ok());
  char bytes[8];
  Slice result;
  status = file->Read(0, sizeof bytes, IOOptions(), &result, bytes, nullptr);
  EXPECT_TRUE(status.IsIOError() && status.GetRetryable());
  rocksdb::FSReadRequest request;
  request.len = sizeof bytes;
  request.scratch = bytes;
  (void)file->MultiRead(&request, 1, IOOptions(), nullptr);
  EXPECT_TRUE(request.status.IsIOError() && request.status.GetRetryable());
  EXPECT_EQ(request.status.GetScope(),
            IOStatus::IOErrorScope::kIOErrorScopeFile);
}

TEST_F(TierFileSystemTest, OnlyACompactionGivesUp) {
  std::string folder = testing::TempDir() + "/files-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  using Reason = rocksdb::TableFileCreationReason;
  Announce(folder + "/1.sst", Reason::kCompaction);
  Announce(folder + "/2.sst", Reason::kFlush);
  const auto compacted = Make(folder + "/1.sst");
  const auto flushed = Make(folder + "/2.sst");
  disk_.write = ENOSPC;
  EXPECT_TRUE(Append(compacted.get()));
  EXPECT_FALSE(compacted->Sync(IOOptions(), nullptr).ok());
  std::thread ends([this] {
    const uint64_t before = disk_.failures;
    while (disk_.failures == before) std::this_thread::yield();
    disk_.write = 0;
  });
  EXPECT_TRUE(Append(flushed.get()));
  ends.join();
  EXPECT_TRUE(flushed->Sync(IOOptions(), nullptr).ok());
  fs::remove_all(folder);
}

TEST_F(TierFileSystemTest, ACompactionThatWroteNothingIsOneThatIsDone) {
  shortage_.OnFailed(Shortage::Kind::kCompaction, ENOSPC, 1);
  rocksdb::CompactionJobInfo job;
  job.status = rocksdb::Status::IOError();
  files_.listener()->OnCompactionCompleted(nullptr, job);
  EXPECT_FALSE(shortage_.status().ok());
  job.status = rocksdb::Status::OK();
  files_.listener()->OnCompactionCompleted(nullptr, job);
  EXPECT_TRUE(shortage_.status().ok());
}

}  // namespace
}  // namespace penstock::ps
