#include "tests/process/log_file.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace penstock::process {

LogFile::LogFile() : fd_(memfd_create("log of a child", MFD_CLOEXEC)) {}

LogFile::~LogFile() { close(fd_); }

uint64_t LogFile::size() const {
  struct stat status;
  return fstat(fd_, &status) == 0 ? status.st_size : 0;
}

std::string LogFile::Text(uint64_t from) const {
  std::string text(size() - from, '\0');
  const ssize_t read = pread(fd_, &text[0], text.size(), from);
  text.resize(read < 0 ? 0 : read);
  return text;
}

}  // namespace penstock::process
