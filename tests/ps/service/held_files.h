// Files whose Sync() and Lock() block until the test releases them. Sync() can
// also fail once.

#ifndef PENSTOCK_TESTS_PS_SERVICE_HELD_FILES_H_
#define PENSTOCK_TESTS_PS_SERVICE_HELD_FILES_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "ps/checkpoint/files.h"

namespace penstock::ps {

// A folder of files in which every Sync() waits for Release(), and on request
// every Lock() too. Thread-safe.
class HeldFiles final : public checkpoint::Files {
 public:
  // Wraps `files`, which outlive this object. This object outlives the opened
  // files.
  explicit HeldFiles(checkpoint::Files* files, bool holds_locks = false)
      : files_(files), holds_locks_(holds_locks) {}

  // Blocks until `count` calls are waiting. Returns false after ten seconds.
  bool AwaitWaiting(int calls) {
    absl::MutexLock lock(&mu_);
    const auto are_there = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return waiting_ >= calls;
    };
    return mu_.AwaitWithTimeout(absl::Condition(&are_there), absl::Seconds(10));
  }
  // Lets all calls return. Call once.
  void Release() { released_.Notify(); }
  // Makes the next call of Sync() fail with `error`.
  void FailOnce(const absl::Status& error) {
    absl::MutexLock lock(&mu_);
    next_ = error;
  }

  absl::StatusOr<std::unique_ptr<checkpoint::WritableFile>> Create(
      absl::string_view path) override {
    auto file = files_->Create(path);
    if (!file.ok()) return file.status();
    return std::make_unique<File>(*std::move(file), this);
  }
  absl::StatusOr<std::unique_ptr<checkpoint::ReadableFile>> Open(
      absl::string_view path) override {
    return files_->Open(path);
  }
  absl::Status MakeFolder(absl::string_view path) override {
    return files_->MakeFolder(path);
  }
  absl::StatusOr<std::vector<checkpoint::FolderEntry>> List(
      absl::string_view folder) override {
    return files_->List(folder);
  }
  absl::Status Rename(absl::string_view from, absl::string_view to) override {
    return files_->Rename(from, to);
  }
  absl::Status Remove(absl::string_view path) override {
    return files_->Remove(path);
  }
  absl::Status RemoveFolder(absl::string_view path) override {
    return files_->RemoveFolder(path);
  }
  absl::Status SyncFolder(absl::string_view folder) override {
    return files_->SyncFolder(folder);
  }
  absl::StatusOr<std::unique_ptr<checkpoint::FileLock>> Lock(
      absl::string_view path) override {
    if (holds_locks_) Wait();
    return files_->Lock(path);
  }

 private:
  class File final : public checkpoint::WritableFile {
   public:
    File(std::unique_ptr<checkpoint::WritableFile> file, HeldFiles* files)
        : file_(std::move(file)), files_(files) {}
    absl::StatusOr<size_t> Write(absl::string_view bytes) override {
      return file_->Write(bytes);
    }
    absl::Status Sync() override {
      const absl::Status status = files_->WaitForSync();
      return status.ok() ? file_->Sync() : status;
    }

   private:
    const std::unique_ptr<checkpoint::WritableFile> file_;
    HeldFiles* const files_;
  };

  void Wait() {
    {
      absl::MutexLock lock(&mu_);
      ++waiting_;
    }
    released_.WaitForNotification();
    absl::MutexLock lock(&mu_);
    --waiting_;
  }
  absl::Status WaitForSync() {
    Wait();
    absl::MutexLock lock(&mu_);
    return std::exchange(next_, absl::OkStatus());
  }

  checkpoint::Files* const files_;
  const bool holds_locks_;
  absl::Notification released_;
  absl::Mutex mu_;
  absl::Status next_ ABSL_GUARDED_BY(mu_);
  int waiting_ ABSL_GUARDED_BY(mu_) = 0;  // calls
};

}  // namespace penstock::ps

#endif  // PENSTOCK_TESTS_PS_SERVICE_HELD_FILES_H_
