// Files in memory that fail, are written in pieces, and lose what a host loses
// with its power, as a test says.

#ifndef PENSTOCK_TESTS_PS_CHECKPOINT_MEMORY_FILES_H_
#define PENSTOCK_TESTS_PS_CHECKPOINT_MEMORY_FILES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "ps/checkpoint/files.h"

namespace penstock::ps::checkpoint {

// What is lost between a crash and what comes after it.
enum class Loss {
  kNothing,       // the process was killed
  kAllUnsynced,   // the power failed before anything was written back
  kUnsyncedData,  // names were written back, and data was not
  kSome,          // of each change and each file, by chance
};

// Not thread-safe.
class MemoryFiles : public Files {
 public:
  // Operations so far: every call of Files and of its files is one.
  int operations() const { return operations_; }

  // Has operation `number` fail with `status`, and no other. A write takes half
  // of its bytes before.
  void FailOnce(int number, absl::Status status);
  // Has it and all that follow do nothing but fail.
  void CrashAt(int number);
  // Goes on after a crash.
  void Restart(Loss loss, unsigned seed = 0);
  // Writes take at most this, and reads give at most this.
  void SetMostAtOnce(size_t bytes) { most_at_once_ = bytes; }

  // All files, as "folder/name", with their bytes.
  std::map<std::string, std::string> Contents() const;
  // To damage a file. It has to be there.
  std::string* Bytes(const std::string& path);
  void Plant(const std::string& path, std::string bytes);
  // Another process may lock the files, too: as over a network, or after
  // somebody removed the file.
  void LoseLock() { locked_ = std::make_shared<bool>(false); }

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

  // Counts an operation, and returns how it fails.
  absl::Status Begin();
  // Null if there is none.
  Node* FolderOf(absl::string_view path);
  std::shared_ptr<Node> Find(absl::string_view path);
  static void Lose(Node* node, Loss loss, std::mt19937* random);

  int operations_ = 0;
  int fail_at_ = -1;
  absl::Status failure_;
  int crash_at_ = -1;
  size_t most_at_once_ = SIZE_MAX;
  std::shared_ptr<bool> locked_ = std::make_shared<bool>(false);
  Node root_;
};

}  // namespace penstock::ps::checkpoint

#endif  // PENSTOCK_TESTS_PS_CHECKPOINT_MEMORY_FILES_H_
