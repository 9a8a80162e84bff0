#include "transport/base/output_file.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "transport/base/status_util.h"

namespace penstock {
namespace base {
namespace {

sigset_t FileSizeSignal() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGXFSZ);
  return signals;
}

// Returns the remedy for an error of open() or write(), or "".
absl::string_view RemedyFor(int error_number) {
  switch (error_number) {
    case ENOENT:
      return ": make the folder first";
    case ENOTDIR:
    case EISDIR:
    case ELOOP:
      return ": name a file in a folder, and not by a symbolic link";
    case EACCES:
    case EPERM:
    case EROFS:
      return ": name a file in a folder that this user may write to";
    case ENOSPC:
    case EDQUOT:
      return ": free some space, or name a file on another disk";
    default:
      return "";
  }
}

absl::Status Failed(int error_number, absl::string_view operation) {
  const absl::Status status = ErrnoStatus(error_number, operation);
  return absl::Status(status.code(),
                      absl::StrCat(status.message(), RemedyFor(error_number)));
}

}  // namespace

absl::StatusOr<UniqueFd> OpenOutputFile(const std::string& path,
                                        absl::string_view what) {
  const std::string operation = absl::StrCat(what, " ", path);
  const auto failed = [&operation] { return Failed(errno, operation); };
  // Opens with O_NONBLOCK, so that a pipe without a reader does not block the
  // call.
  UniqueFd file(open(path.c_str(),
                     O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
                     0600));
  if (!file.valid()) return failed();
  struct stat status;
  if (fstat(file.get(), &status) != 0) return failed();
  const auto refused = [&operation](absl::string_view why) {
    return absl::FailedPreconditionError(absl::StrCat(operation, ": ", why));
  };
  if (!S_ISREG(status.st_mode)) return refused("it is not a regular file");
  // Refuses another user's file. Such a file may exist if others can write to
  // the folder.
  if (status.st_uid != geteuid()) return refused("it is another user's");
  if (status.st_nlink != 1) return refused("the file has other names, too");
  if (flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return failed();
    return refused(
        "another process is writing it, or a child of one that did; put %p, "
        "the pid, into the name");
  }
  // Makes the file private, because an existing file may be readable by others.
  if (fchmod(file.get(), 0600) != 0) return failed();
  if (ftruncate(file.get(), 0) != 0) return failed();
  return file;
}

FileSizeSignalBlock::FileSizeSignalBlock() {
  sigset_t pending;
  sigpending(&pending);
  was_pending_ = sigismember(&pending, SIGXFSZ) == 1;
  const sigset_t signals = FileSizeSignal();
  pthread_sigmask(SIG_BLOCK, &signals, &before_);
}

FileSizeSignalBlock::~FileSizeSignalBlock() {
  const sigset_t signals = FileSizeSignal();
  const timespec at_once = {0, 0};
  // Removes a pending SIGXFSZ before unblocking the signal. A write of this
  // thread may have raised it, for this thread only.
  while (!was_pending_ && sigtimedwait(&signals, nullptr, &at_once) < 0 &&
         errno == EINTR) {
  }
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

absl::Status WriteError(int error_number) {
  if (error_number != EFBIG) return Failed(error_number, "write");
  return absl::ResourceExhaustedError(
      "write: the file is larger than the limit on file sizes: raise it "
      "(ulimit -f, RLIMIT_FSIZE)");
}

}  // namespace base
}  // namespace penstock
