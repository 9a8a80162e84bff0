// The log of a process that a test starts.

#ifndef PENSTOCK_TESTS_PROCESS_LOG_FILE_H_
#define PENSTOCK_TESTS_PROCESS_LOG_FILE_H_

#include <cstdint>
#include <string>

namespace penstock::process {

// A file of its own, in memory: however much is written, nobody is held up.
class LogFile {
 public:
  LogFile();
  ~LogFile();
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

  // For Child::Start().
  int fd() const { return fd_; }
  uint64_t size() const;
  // What has been written since the file had that size.
  std::string Text(uint64_t from) const;

 private:
  const int fd_;
};

}  // namespace penstock::process

#endif  // PENSTOCK_TESTS_PROCESS_LOG_FILE_H_
