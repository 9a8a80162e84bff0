// The log of a process that a test starts.

#ifndef PENSTOCK_TESTS_PROCESS_LOG_FILE_H_
#define PENSTOCK_TESTS_PROCESS_LOG_FILE_H_

#include <cstdint>
#include <string>

namespace penstock::process {

// A file in memory. Whatever is written to it, nobody has to wait.
class LogFile {
 public:
  LogFile();
  ~LogFile();
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

  // For Child::Start().
  int fd() const { return fd_; }
  uint64_t size() const;
  // Returns what has been written since the file had size `from`.
  std::string Text(uint64_t from) const;

 private:
  const int fd_;
};

}  // namespace penstock::process

#endif  // PENSTOCK_TESTS_PROCESS_LOG_FILE_H_
