#include "bench/rpc/report/result_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"

namespace penstock {
namespace bench {

absl::StatusOr<std::unique_ptr<ResultFile>> ResultFile::Open(
    const std::string& path, size_t reserve) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
                      S_IRUSR | S_IWUSR | S_IRGRP | S_IROTH);
  std::unique_ptr<ResultFile> file(new ResultFile(path, fd));
  if (fd < 0) return file->Error("open");
  const absl::Status status = file->Reserve(reserve);
  if (!status.ok()) return status;
  return file;
}

ResultFile::~ResultFile() {
  if (fd_ >= 0) close(fd_);
}

absl::Status ResultFile::Reserve(size_t bytes) {
  struct stat info;
  if (fstat(fd_, &info) != 0) return Error("stat");
  regular_ = S_ISREG(info.st_mode);
  // Write no blanks to a device or a pipe, which could not remove them. A line
  // feed before the JSON is harmless, and tests that writing works.
  return WriteAll(regular_ ? std::string(bytes, ' ') : "\n");
}

absl::Status ResultFile::Write(const std::string& text) {
  if (regular_ && lseek(fd_, 0, SEEK_SET) != 0) return Error("seek in");
  const absl::Status status = WriteAll(text);
  if (!status.ok()) return status;
  if (regular_ && ftruncate(fd_, static_cast<off_t>(text.size())) != 0) {
    return Error("truncate");
  }
  const int fd = fd_;
  fd_ = -1;
  // Check close(): some file systems report a failed write only there.
  if (close(fd) != 0) return Error("close");
  return absl::OkStatus();
}

absl::Status ResultFile::WriteAll(const std::string& text) {
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t size = write(fd_, text.data() + done, text.size() - done);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return Error("write");
    done += size;
  }
  return absl::OkStatus();
}

absl::Status ResultFile::Error(const char* operation) const {
  return absl::UnavailableError(
      absl::StrCat("cannot ", operation, " ", path_, ": ", strerror(errno)));
}

}  // namespace bench
}  // namespace penstock
