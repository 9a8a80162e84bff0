// The file operations of checkpoints, behind an interface, so that a test can
// make each operation fail.

#ifndef PENSTOCK_PS_CHECKPOINT_FILES_H_
#define PENSTOCK_PS_CHECKPOINT_FILES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace penstock::ps::checkpoint {

class WritableFile {
 public:
  // Closes the file. Closing makes nothing durable.
  virtual ~WritableFile() = default;
  // Appends at least one of `bytes`, and returns the number appended.
  virtual absl::StatusOr<size_t> Write(absl::string_view bytes) = 0;
  // Blocks until the bytes are durable. After an error, the state of all bytes
  // is unknown.
  virtual absl::Status Sync() = 0;
};

class ReadableFile {
 public:
  virtual ~ReadableFile() = default;
  virtual uint64_t size() const = 0;
  // Reads up to `size` bytes from `offset` on, and returns the number read.
  // Returns 0 only at the end of the file.
  virtual absl::StatusOr<size_t> Read(uint64_t offset, char* to,
                                      size_t size) = 0;
};

// A lock on a file. The destructor and the end of the process release the lock.
class FileLock {
 public:
  virtual ~FileLock() = default;
  // Returns OK while the lock protects the file. Returns FAILED_PRECONDITION if
  // the file was removed, or the root was made again. Another process may then
  // hold a lock of the same name.
  virtual absl::Status Check() const = 0;
};

struct FolderEntry {
  enum class Type { kFile, kFolder, kOther };
  std::string name;
  Type type = Type::kOther;
};

// The files below a root, which may be on a file system that several hosts
// share. A path is "" (the root), "name" or "folder/name". Opens only regular
// files and folders, and follows no symbolic link below the root: otherwise
// returns FAILED_PRECONDITION. Errors name the operation, the path and the
// cause: NOT_FOUND, ALREADY_EXISTS, PERMISSION_DENIED, RESOURCE_EXHAUSTED for a
// full disk, a quota or a limit on the size of files, and others. If such a
// limit on sizes is set, the process must ignore SIGXFSZ. Each call looks up
// the root by its name, so a root that was removed and made again is used. If
// the root is missing, all calls return FAILED_PRECONDITION.
//
// Thread-safe. One thread at a time may use an opened file. Opened files may
// outlive this object.
class Files {
 public:
  virtual ~Files() = default;
  // Creates a file. Returns ALREADY_EXISTS if the file exists.
  virtual absl::StatusOr<std::unique_ptr<WritableFile>> Create(
      absl::string_view path) = 0;
  virtual absl::StatusOr<std::unique_ptr<ReadableFile>> Open(
      absl::string_view path) = 0;
  virtual absl::Status MakeFolder(absl::string_view path) = 0;
  // Returns the entries of a folder, in no order.
  virtual absl::StatusOr<std::vector<FolderEntry>> List(
      absl::string_view folder) = 0;
  // Renames a file, and atomically replaces an existing `to`. Both paths are in
  // one folder.
  virtual absl::Status Rename(absl::string_view from, absl::string_view to) = 0;
  // Removes a file. Removes a link, but not its target.
  virtual absl::Status Remove(absl::string_view path) = 0;
  virtual absl::Status RemoveFolder(absl::string_view path) = 0;
  // Makes the names in a folder survive a power loss.
  virtual absl::Status SyncFolder(absl::string_view folder) = 0;
  // Locks a file, and creates a missing file. Returns FAILED_PRECONDITION if
  // another process, or another FileLock of this process, holds the lock.
  virtual absl::StatusOr<std::unique_ptr<FileLock>> Lock(
      absl::string_view path) = 0;
};

// Writes all of `bytes` to the file, in as many calls as needed.
absl::Status WriteAll(WritableFile* file, absl::string_view bytes);

// Reads exactly `size` bytes. Returns DATA_LOSS if the file ends before.
absl::Status ReadExactly(ReadableFile* file, uint64_t offset, char* to,
                         size_t size);

}  // namespace penstock::ps::checkpoint

#endif  // PENSTOCK_PS_CHECKPOINT_FILES_H_
