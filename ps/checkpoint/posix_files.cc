#include "ps/checkpoint/posix_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "transport/base/unique_fd.h"

namespace penstock::ps::checkpoint {
namespace {

using base::UniqueFd;

// The number of written bytes after which the kernel is told to start writing
// them to the disk. Without this, Sync() would take long, and a checkpoint
// would fill memory with dirty pages.
constexpr uint64_t kWriteBehind = 8 << 20;

absl::Status Error(int error, absl::string_view operation,
                   absl::string_view path) {
  const std::string what = absl::StrCat(operation, " ", path);
  if (error == ELOOP || error == ENOTDIR) {
    return absl::FailedPreconditionError(
        absl::StrCat(what, ": a symbolic link, or no folder: not followed"));
  }
  if (error == ENOSPC || error == EDQUOT) {
    return absl::ResourceExhaustedError(absl::StrCat(
        what,
        ": the disk or the quota is full; make room, or keep fewer "
        "checkpoints"));
  }
  if (error == EFBIG) {
    return absl::ResourceExhaustedError(
        absl::StrCat(what, ": the file is too large; raise ulimit -f"));
  }
  return absl::ErrnoToStatus(error, what);
}

// Calls a system function again while a signal interrupts it.
template <typename Call>
auto Uninterrupted(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

class PosixWritableFile : public WritableFile {
 public:
  PosixWritableFile(UniqueFd fd, absl::string_view path)
      : fd_(std::move(fd)), path_(path) {}

  absl::StatusOr<size_t> Write(absl::string_view bytes) override {
    const ssize_t written = Uninterrupted(
        [&] { return write(fd_.get(), bytes.data(), bytes.size()); });
    if (written < 0) return Error(errno, "write", path_);
    written_ += static_cast<uint64_t>(written);
    if (written_ - behind_ >= kWriteBehind) WriteBehind();
    return static_cast<size_t>(written);
  }

  absl::Status Sync() override {
    if (fsync(fd_.get()) == 0) return absl::OkStatus();
    return Error(errno, "sync", path_);
  }

 private:
  // Starts to write cached bytes to the disk. Ignores errors, because Sync()
  // reports them.
  void WriteBehind() {
    sync_file_range(fd_.get(), static_cast<off64_t>(behind_),
                    static_cast<off64_t>(written_ - behind_),
                    SYNC_FILE_RANGE_WRITE);
    behind_ = written_;
  }

  const UniqueFd fd_;
  const std::string path_;
  uint64_t written_ = 0;
  uint64_t behind_ = 0;  // the kernel has been asked to write up to here
};

class PosixReadableFile : public ReadableFile {
 public:
  PosixReadableFile(UniqueFd fd, uint64_t size, absl::string_view path)
      : fd_(std::move(fd)), size_(size), path_(path) {}

  uint64_t size() const override { return size_; }

  absl::StatusOr<size_t> Read(uint64_t offset, char* to, size_t size) override {
    const ssize_t got = Uninterrupted(
        [&] { return pread(fd_.get(), to, size, static_cast<off_t>(offset)); });
    if (got < 0) return Error(errno, "read", path_);
    return static_cast<size_t>(got);
  }

 private:
  const UniqueFd fd_;
  const uint64_t size_;
  const std::string path_;
};

// Opens the root by its name. The folder of this name may have been replaced
// since.
absl::StatusOr<UniqueFd> OpenRoot(const std::string& root) {
  UniqueFd fd(open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.valid()) return fd;
  // Replaces ENOENT, because it would become NOT_FOUND, which callers read as a
  // missing checkpoint.
  if (errno == ENOENT) {
    return absl::FailedPreconditionError(
        absl::StrCat("the folder ", root, " is gone: make it again"));
  }
  return Error(errno, "open folder", root);
}

class PosixLock : public FileLock {
 public:
  PosixLock(UniqueFd fd, std::string root, absl::string_view name)
      : fd_(std::move(fd)), root_(std::move(root)), name_(name) {}

  absl::Status Check() const override {
    struct stat ours = {};
    struct stat named = {};
    if (fstat(fd_.get(), &ours) != 0) return Error(errno, "stat", name_);
    const auto root = OpenRoot(root_);
    if (!root.ok()) return root.status();
    if (fstatat(root->get(), name_.c_str(), &named, AT_SYMLINK_NOFOLLOW) != 0 &&
        errno != ENOENT) {
      return Error(errno, "stat", name_);
    }
    if (ours.st_ino == named.st_ino && ours.st_dev == named.st_dev) {
      return absl::OkStatus();
    }
    return absl::FailedPreconditionError(absl::StrCat(
        "the file ", name_,
        ", which locks the folder, was removed: another process may write "
        "checkpoints to this folder"));
  }

 private:
  const UniqueFd fd_;
  const std::string root_;
  const std::string name_;
};

FolderEntry::Type TypeOf(int folder, const dirent& entry) {
  struct stat info = {};
  if (fstatat(folder, entry.d_name, &info, AT_SYMLINK_NOFOLLOW) != 0) {
    return FolderEntry::Type::kOther;
  }
  if (S_ISREG(info.st_mode)) return FolderEntry::Type::kFile;
  if (S_ISDIR(info.st_mode)) return FolderEntry::Type::kFolder;
  return FolderEntry::Type::kOther;
}

class PosixFiles : public Files {
 public:
  explicit PosixFiles(std::string root) : root_(std::move(root)) {}

  absl::StatusOr<std::unique_ptr<WritableFile>> Create(
      absl::string_view path) override {
    auto fd = OpenAt(path, O_WRONLY | O_CREAT | O_EXCL, "create");
    if (!fd.ok()) return fd.status();
    return std::make_unique<PosixWritableFile>(*std::move(fd), path);
  }

  absl::StatusOr<std::unique_ptr<ReadableFile>> Open(
      absl::string_view path) override {
    // Opens with O_NONBLOCK, because opening a pipe would block until a writer
    // comes.
    auto fd = OpenAt(path, O_RDONLY | O_NONBLOCK, "open");
    if (!fd.ok()) return fd.status();
    struct stat info = {};
    if (fstat(fd->get(), &info) != 0) return Error(errno, "stat", path);
    if (!S_ISREG(info.st_mode)) {
      return absl::FailedPreconditionError(
          absl::StrCat("open ", path, ": it is no regular file"));
    }
    posix_fadvise(fd->get(), 0, 0, POSIX_FADV_SEQUENTIAL);
    return std::make_unique<PosixReadableFile>(
        *std::move(fd), static_cast<uint64_t>(info.st_size), path);
  }

  absl::Status MakeFolder(absl::string_view path) override {
    return At(path, "make folder", [](int folder, const char* name) {
      return mkdirat(folder, name, 0700);
    });
  }

  absl::StatusOr<std::vector<FolderEntry>> List(
      absl::string_view folder) override {
    auto fd = Folder(folder, "list");
    if (!fd.ok()) return fd.status();
    DIR* listing = fdopendir(fd->get());
    if (listing == nullptr) return Error(errno, "list", folder);
    const int number = fd->Release();
    std::vector<FolderEntry> entries;
    errno = 0;
    while (const dirent* entry = readdir(listing)) {
      const absl::string_view name = entry->d_name;
      if (name != "." && name != "..") {
        entries.push_back({std::string(name), TypeOf(number, *entry)});
      }
      errno = 0;
    }
    const int error = errno;
    closedir(listing);
    if (error != 0) return Error(error, "list", folder);
    return entries;
  }

  absl::Status Rename(absl::string_view from, absl::string_view to) override {
    const absl::string_view name = to.substr(to.rfind('/') + 1);
    return At(from, "rename", [&](int folder, const char* old_name) {
      return renameat(folder, old_name, folder, std::string(name).c_str());
    });
  }

  absl::Status Remove(absl::string_view path) override {
    return At(path, "remove", [](int folder, const char* name) {
      return unlinkat(folder, name, 0);
    });
  }

  absl::Status RemoveFolder(absl::string_view path) override {
    return At(path, "remove folder", [](int folder, const char* name) {
      return unlinkat(folder, name, AT_REMOVEDIR);
    });
  }

  absl::Status SyncFolder(absl::string_view folder) override {
    auto fd = Folder(folder, "sync");
    if (!fd.ok()) return fd.status();
    if (fsync(fd->get()) != 0) return Error(errno, "sync", folder);
    return absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<FileLock>> Lock(
      absl::string_view path) override {
    auto fd = OpenAt(path, O_RDWR | O_CREAT | O_NONBLOCK, "open");
    if (!fd.ok()) return fd.status();
    const int locked =
        Uninterrupted([&] { return flock(fd->get(), LOCK_EX | LOCK_NB); });
    if (locked == 0) {
      return std::make_unique<PosixLock>(*std::move(fd), root_, path);
    }
    if (errno != EWOULDBLOCK) return Error(errno, "lock", path);
    return absl::FailedPreconditionError(
        absl::StrCat("lock the folder by its file ", path,
                     ": another process writes checkpoints to "
                     "this folder"));
  }

 private:
  // Opens a folder. Errors name `operation`.
  absl::StatusOr<UniqueFd> Folder(absl::string_view path,
                                  absl::string_view operation) {
    auto root = OpenRoot(root_);
    if (!root.ok() || path.empty()) return root;
    UniqueFd fd(openat(root->get(), std::string(path).c_str(),
                       O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!fd.valid()) return Error(errno, operation, path);
    return fd;
  }

  // Calls call(folder, name), a system function, for a path that has at most
  // one folder.
  template <typename Call>
  absl::Status At(absl::string_view path, absl::string_view operation,
                  Call call) {
    const size_t slash = path.find('/');
    const bool is_top = slash == absl::string_view::npos;
    auto folder = Folder(is_top ? "" : path.substr(0, slash), operation);
    if (!folder.ok()) return folder.status();
    const std::string name(is_top ? path : path.substr(slash + 1));
    if (name.empty() || absl::StrContains(name, '/')) {
      return absl::InvalidArgumentError(absl::StrCat("bad path: ", path));
    }
    if (call(folder->get(), name.c_str()) < 0) {
      return Error(errno, operation, path);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<UniqueFd> OpenAt(absl::string_view path, int flags,
                                  absl::string_view operation) {
    UniqueFd fd;
    absl::Status status =
        At(path, operation, [&](int folder, const char* name) {
          fd.Reset(openat(folder, name, flags | O_NOFOLLOW | O_CLOEXEC, 0600));
          return fd.get();
        });
    if (!status.ok()) return status;
    return fd;
  }

  const std::string root_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Files>> OpenFolder(const std::string& root) {
  UniqueFd fd(open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return absl::ErrnoToStatus(errno, "open folder " + root);
  std::error_code error;
  const auto absolute = std::filesystem::absolute(root, error);
  if (error) return absl::ErrnoToStatus(error.value(), "name folder " + root);
  return std::make_unique<PosixFiles>(absolute.string());
}

}  // namespace penstock::ps::checkpoint
