// The file operations that checkpoints are made of, so that a test can make
// each of them fail.

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
  // Closes the file, which makes nothing durable.
  virtual ~WritableFile() = default;
  // Appends some of `bytes`, at least one, and returns how many.
  virtual absl::StatusOr<size_t> Write(absl::string_view bytes) = 0;
  // Returns when the bytes survive a loss of power. After an error nothing is
  // known about any of them.
  virtual absl::Status Sync() = 0;
};

class ReadableFile {
 public:
  virtual ~ReadableFile() = default;
  virtual uint64_t size() const = 0;
  // Reads up to `size` bytes from `offset` on, and returns how many: 0 at the
  // end only.
  virtual absl::StatusOr<size_t> Read(uint64_t offset, char* to,
                                      size_t size) = 0;
};

// Lets go of a lock with its destructor; so does the end of the process.
class FileLock {
 public:
  virtual ~FileLock() = default;
  // Returns FAILED_PRECONDITION if the file was removed: then another process
  // may hold a lock of the same name.
  virtual absl::Status Check() const = 0;
};

struct FolderEntry {
  enum class Type { kFile, kFolder, kOther };
  std::string name;
  Type type = Type::kOther;
};

// The files below a root, which may be on a file system that several hosts
// share. A path is the root itself, "", a name in it, or "folder/name". Follows
// no symbolic link below the root, and opens nothing but regular files and
// folders: FAILED_PRECONDITION. Errors name the operation, the path and the
// cause: NOT_FOUND, ALREADY_EXISTS, PERMISSION_DENIED, RESOURCE_EXHAUSTED for a
// full disk, a quota or a limit on the size of files, and others. Where such a
// limit is set, the process has to ignore SIGXFSZ.
//
// Thread-safe; an opened file is one thread's at a time, and may outlive this.
class Files {
 public:
  virtual ~Files() = default;
  // Makes a file that was not there.
  virtual absl::StatusOr<std::unique_ptr<WritableFile>> Create(
      absl::string_view path) = 0;
  virtual absl::StatusOr<std::unique_ptr<ReadableFile>> Open(
      absl::string_view path) = 0;
  virtual absl::Status MakeFolder(absl::string_view path) = 0;
  // In no order.
  virtual absl::StatusOr<std::vector<FolderEntry>> List(
      absl::string_view folder) = 0;
  // Replaces what `to` named, at once. Both are in one folder.
  virtual absl::Status Rename(absl::string_view from, absl::string_view to) = 0;
  // Removes a file, or a link and not what it names.
  virtual absl::Status Remove(absl::string_view path) = 0;
  virtual absl::Status RemoveFolder(absl::string_view path) = 0;
  // Makes the names in a folder durable.
  virtual absl::Status SyncFolder(absl::string_view folder) = 0;
  // Makes the file if need be. Returns FAILED_PRECONDITION if another process,
  // or another lock of this one, holds it.
  virtual absl::StatusOr<std::unique_ptr<FileLock>> Lock(
      absl::string_view path) = 0;
};

// Writes all of `bytes`.
absl::Status WriteAll(WritableFile* file, absl::string_view bytes);

// Reads exactly `size` bytes. Returns DATA_LOSS if the file ends before.
absl::Status ReadExactly(ReadableFile* file, uint64_t offset, char* to,
                         size_t size);

}  // namespace penstock::ps::checkpoint

#endif  // PENSTOCK_PS_CHECKPOINT_FILES_H_
