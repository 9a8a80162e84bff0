// The log of a child process.

#ifndef PENSTOCK_TESTS_PROCESS_LOG_FILE_H_
#define PENSTOCK_TESTS_PROCESS_LOG_FILE_H_

#include <cstdint>
#include <string>

namespace penstock::process {

// A file in memory, to which writes never block.
class LogFile {
 public:
  LogFile();
  ~LogFile();
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

  // Returns the descriptor for Child::Start().
  int fd() const { return fd_; }
  uint64_t size() const;
  // Returns the text from offset `from` to the end of the file.
  std::string Text(uint64_t from) const;

 private:
  const int fd_;
};

}  // namespace penstock::process

#endif  // PENSTOCK_TESTS_PROCESS_LOG_FILE_H_
