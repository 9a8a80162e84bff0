#include "ps/tier/tier_file_system.h"

#include <rocksdb/slice.h>

#include <utility>

#include "absl/strings/match.h"
#include "ps/tier/table_file.h"

namespace penstock::ps {
namespace {

using rocksdb::FileOptions;
using rocksdb::FSDirectory;
using rocksdb::FSRandomAccessFile;
using rocksdb::FSReadRequest;
using rocksdb::FSWritableFile;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

// A file that nobody reads. Ignores failures once the database is open. Before
// that, reports the first failure only at Sync() or Close(), because RocksDB
// may abort if it writes after a failure.
class ForgettingFile : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  // Wraps `file`. `is_opened` must outlive the file.
  ForgettingFile(std::unique_ptr<FSWritableFile> file,
                 const std::atomic<bool>* is_opened)
      : FSWritableFileOwnerWrapper(std::move(file)), is_opened_(is_opened) {}

  IOStatus Append(const Slice& data, const IOOptions& options,
                  IODebugContext* debug) override {
    if (failure_.ok()) Keep(target()->Append(data, options, debug));
    return IOStatus::OK();
  }
  IOStatus Append(const Slice& data, const IOOptions& options,
                  const rocksdb::DataVerificationInfo& /*verification*/,
                  IODebugContext* debug) override {
    return Append(data, options, debug);
  }
  IOStatus Flush(const IOOptions& options, IODebugContext* debug) override {
    if (failure_.ok()) Keep(target()->Flush(options, debug));
    return IOStatus::OK();
  }
  IOStatus Sync(const IOOptions& options, IODebugContext* debug) override {
    if (failure_.ok()) Keep(target()->Sync(options, debug));
    return Report();
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* debug) override {
    return Sync(options, debug);
  }
  IOStatus Close(const IOOptions& options, IODebugContext* debug) override {
    Keep(target()->Close(options, debug));
    return Report();
  }

 private:
  void Keep(IOStatus status) {
    if (failure_.ok()) failure_ = std::move(status);
  }
  IOStatus Report() const { return *is_opened_ ? IOStatus::OK() : failure_; }

  const std::atomic<bool>* const is_opened_;
  IOStatus failure_;
};

// A file that reports failed reads as retryable. After a permanent read error,
// RocksDB would stop all writes for good; the next compaction may succeed.
class RetriedFile : public rocksdb::FSRandomAccessFileOwnerWrapper {
 public:
  explicit RetriedFile(std::unique_ptr<FSRandomAccessFile> file)
      : FSRandomAccessFileOwnerWrapper(std::move(file)) {}

  IOStatus Read(uint64_t offset, size_t size, const IOOptions& options,
                Slice* result, char* scratch,
                IODebugContext* debug) const override {
    return Retryable(
        target()->Read(offset, size, options, result, scratch, debug));
  }
  IOStatus MultiRead(FSReadRequest* requests, size_t count,
                     const IOOptions& options, IODebugContext* debug) override {
    IOStatus status = target()->MultiRead(requests, count, options, debug);
    for (size_t i = 0; i < count; ++i) {
      requests[i].status = Retryable(std::move(requests[i].status));
    }
    return Retryable(std::move(status));
  }

 private:
  static IOStatus Retryable(IOStatus status) {
    if (!status.IsIOError()) return status;
    status.SetRetryable(true);
    status.SetScope(IOStatus::IOErrorScope::kIOErrorScopeFile);
    return status;
  }
};

class UnsyncedFolder : public FSDirectory {
 public:
  IOStatus Fsync(const IOOptions& /*options*/,
                 IODebugContext* /*debug*/) override {
    return IOStatus::OK();
  }
  IOStatus Close(const IOOptions& /*options*/,
                 IODebugContext* /*debug*/) override {
    return IOStatus::OK();
  }
};

bool IsTable(const std::string& path) { return absl::EndsWith(path, ".sst"); }

}  // namespace

class TierFileSystem::Listener : public rocksdb::EventListener {
 public:
  explicit Listener(Shortage* shortage) : shortage_(shortage) {}

  // Records a table that a compaction is about to write. RocksDB calls this
  // before it creates the file, on the same thread.
  void OnTableFileCreationStarted(
      const rocksdb::TableFileCreationBriefInfo& table) override {
    if (table.reason != rocksdb::TableFileCreationReason::kCompaction) return;
    base::MutexLock lock(&mu_);
    compacted_.insert(table.file_path);
  }
  // Records the end of a compaction. Also called for compactions that moved or
  // removed tables and wrote none.
  void OnCompactionCompleted(rocksdb::DB* /*db*/,
                             const rocksdb::CompactionJobInfo& job) override {
    if (job.status.ok()) shortage_->OnDone(Shortage::Kind::kCompaction);
  }

  Shortage::Kind Take(const std::string& path) {
    base::MutexLock lock(&mu_);
    return compacted_.erase(path) > 0 ? Shortage::Kind::kCompaction
                                      : Shortage::Kind::kFlush;
  }

 private:
  Shortage* const shortage_;
  base::Mutex mu_;
  // The compaction tables that are about to be created.
  absl::flat_hash_set<std::string> compacted_ ABSL_GUARDED_BY(mu_);
};

TierFileSystem::TierFileSystem(
    DiskCalls* calls, Shortage* shortage,
    const std::shared_ptr<rocksdb::FileSystem>& kernel)
    : FileSystemWrapper(kernel),
      calls_(calls),
      shortage_(shortage),
      listener_(std::make_shared<Listener>(shortage)) {}

TierFileSystem::~TierFileSystem() = default;

std::shared_ptr<rocksdb::EventListener> TierFileSystem::listener() const {
  return listener_;
}

IOStatus TierFileSystem::NewWritableFile(const std::string& path,
                                         const FileOptions& options,
                                         std::unique_ptr<FSWritableFile>* file,
                                         IODebugContext* debug) {
  if (IsTable(path)) {
    const Shortage::Kind kind = listener_->Take(path);
    if (kind == Shortage::Kind::kCompaction) shortage_->AwaitCompaction();
    *file = std::make_unique<TableFile>(path, kind, calls_, shortage_);
    return IOStatus::OK();
  }
  std::unique_ptr<FSWritableFile> target_file;
  IOStatus made = target()->NewWritableFile(path, options, &target_file, debug);
  if (made.ok()) {
    *file =
        std::make_unique<ForgettingFile>(std::move(target_file), &is_opened_);
  }
  return made;
}

IOStatus TierFileSystem::NewRandomAccessFile(
    const std::string& path, const FileOptions& options,
    std::unique_ptr<FSRandomAccessFile>* file, IODebugContext* debug) {
  std::unique_ptr<FSRandomAccessFile> target_file;
  IOStatus opened =
      target()->NewRandomAccessFile(path, options, &target_file, debug);
  if (opened.ok()) {
    *file = std::make_unique<RetriedFile>(std::move(target_file));
  } else if (opened.IsIOError()) {
    opened.SetRetryable(true);
    opened.SetScope(IOStatus::IOErrorScope::kIOErrorScopeFile);
  }
  return opened;
}

IOStatus TierFileSystem::NewDirectory(const std::string& /*path*/,
                                      const IOOptions& /*options*/,
                                      std::unique_ptr<FSDirectory>* folder,
                                      IODebugContext* /*debug*/) {
  *folder = std::make_unique<UnsyncedFolder>();
  return IOStatus::OK();
}

}  // namespace penstock::ps
