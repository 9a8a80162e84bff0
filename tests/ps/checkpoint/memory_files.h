// A file system in memory. A test can inject failures, short writes, and the
// losses of a power failure.

#ifndef PENSTOCK_TESTS_PS_CHECKPOINT_MEMORY_FILES_H_
#define PENSTOCK_TESTS_PS_CHECKPOINT_MEMORY_FILES_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "ps/checkpoint/files.h"

namespace penstock::ps::checkpoint {

// Selects the data that a crash loses.
enum class Loss {
  kNothing,       // nothing: the process was killed
  kAllUnsynced,   // the power failed before anything was written back
  kUnsyncedData,  // names were written back, and data was not
  kSome,          // a random part of each change and each file
};

// A file system in memory. Thread-safe, because the servers of a test share a
// folder.
class MemoryFiles : public Files {
 public:
  // Returns the number of operations so far: the calls of this object and of
  // the files that it has opened.
  int operations() const {
    absl::MutexLock lock(&mu_);
    return operations_;
  }

  // Makes only operation `number` fail, with `status`. A failing write first
  // writes half of its bytes.
  void FailOnce(int number, absl::Status status);
  // Makes operation `number` and all later operations fail.
  void CrashAt(int number);
  // Restarts after a crash that has lost the given part of the data.
  void Restart(Loss loss, unsigned seed = 0);
  // Limits the bytes of each write and each read.
  void SetMostAtOnce(size_t bytes) {
    absl::MutexLock lock(&mu_);
    most_at_once_ = bytes;
  }

  // Returns all files, as "folder/name", with their bytes.
  std::map<std::string, std::string> Contents() const;
  // Returns the bytes of an existing file, so that a test can damage them. No
  // server may use the file meanwhile.
  std::string* Bytes(const std::string& path);
  void Plant(const std::string& path, std::string bytes);
  // Removes all files, and makes the root again.
  void RemoveAll();
  // Lets another process take the lock that this process holds. In practice,
  // this happens on a network file system, or after the lock file was removed.
  void LoseLock();

  absl::StatusOr<std::unique_ptr<WritableFile>> Create(
      absl::string_view path) override;
  absl::StatusOr<std::unique_ptr<ReadableFile>> Open(
      absl::string_view path) override;
  absl::Status MakeFolder(absl::string_view path) override;
  absl::StatusOr<std::vector<FolderEntry>> List(
      absl::string_view folder) override;
  absl::Status Rename(absl::string_view from, absl::string_view to) override;
  absl::Status Remove(absl::string_view path) override;
  absl::Status RemoveFolder(absl::string_view path) override;
  absl::Status SyncFolder(absl::string_view folder) override;
  absl::StatusOr<std::unique_ptr<FileLock>> Lock(
      absl::string_view path) override;

  struct Node {
    bool is_folder = false;
    std::string bytes;
    std::string synced;
    std::map<std::string, std::shared_ptr<Node>> entries;
    std::map<std::string, std::shared_ptr<Node>> synced_entries;
  };

 private:
  friend class MemoryWritable;
  friend class MemoryReadable;
  friend class MemoryLock;

  // Counts an operation, and returns its injected error.
  absl::Status Begin() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void DropLock() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    locked_ = std::make_shared<std::atomic<bool>>(false);
  }
  // Returns the folder of `path`, or null if the folder does not exist.
  Node* FolderOf(absl::string_view path) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::shared_ptr<Node> Find(absl::string_view path)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  static void Lose(Node* node, Loss loss, std::mt19937* random);

  mutable absl::Mutex mu_;
  int operations_ ABSL_GUARDED_BY(mu_) = 0;
  int fail_at_ ABSL_GUARDED_BY(mu_) = -1;
  absl::Status failure_ ABSL_GUARDED_BY(mu_);
  int crash_at_ ABSL_GUARDED_BY(mu_) = -1;
  size_t most_at_once_ ABSL_GUARDED_BY(mu_) = SIZE_MAX;
  // True while the lock is held. A lost lock leaves its flag behind.
  std::shared_ptr<std::atomic<bool>> locked_ ABSL_GUARDED_BY(mu_) =
      std::make_shared<std::atomic<bool>>(false);
  Node root_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock::ps::checkpoint

#endif  // PENSTOCK_TESTS_PS_CHECKPOINT_MEMORY_FILES_H_
