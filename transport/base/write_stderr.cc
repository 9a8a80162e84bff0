#include "transport/base/write_stderr.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "transport/base/output_file.h"
#include "transport/base/unique_fd.h"

namespace penstock {
namespace base {
namespace {

bool Write(int fd, absl::string_view line) {
  return write(fd, line.data(), line.size()) ==
         static_cast<ssize_t>(line.size());
}

// Opens standard error, a pipe or a terminal, again in non-blocking mode, and
// writes the line. Setting O_NONBLOCK on the existing descriptor would affect
// every process that shares the open file description.
bool WriteAnew(absl::string_view line) {
  const UniqueFd own(
      open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  if (own.valid()) return Write(own.get(), line);
  if (errno == ENXIO) return false;  // a pipe whose reader is gone
  // Writes to the existing descriptor. Opening it again has failed: there is no
  // /proc, no descriptor is left, or the file belongs to another user. A
  // writable pipe has room for PIPE_BUF bytes, so the write blocks only if
  // another process writes first.
  pollfd room = {STDERR_FILENO, POLLOUT, 0};
  return poll(&room, 1, 0) == 1 && (room.revents & POLLOUT) != 0 &&
         Write(STDERR_FILENO, line);
}

}  // namespace

bool WriteToStderr(absl::string_view line) {
  struct stat status;
  if (fstat(STDERR_FILENO, &status) != 0) return false;
  if (S_ISSOCK(status.st_mode)) {
    return send(STDERR_FILENO, line.data(), line.size(),
                MSG_DONTWAIT | MSG_NOSIGNAL) ==
           static_cast<ssize_t>(line.size());
  }
  if (S_ISFIFO(status.st_mode) || S_ISCHR(status.st_mode)) {
    return WriteAnew(line);
  }
  const FileSizeSignalBlock block;  // stderr may be a file
  return Write(STDERR_FILENO, line);
}

}  // namespace base
}  // namespace penstock
