// A result file. Opening the file checks, before the measurement, that results
// can be written.

#ifndef PENSTOCK_BENCH_RPC_REPORT_RESULT_FILE_H_
#define PENSTOCK_BENCH_RPC_REPORT_RESULT_FILE_H_

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace penstock {
namespace bench {

// An open file. Opening a regular file also fills it with `reserve` blanks, so
// that a full disk is detected before the measurement. An interrupted run
// leaves the blanks, which no program accepts as a result.
class ResultFile {
 public:
  // Opens a file. Errors name the path and the cause.
  static absl::StatusOr<std::unique_ptr<ResultFile>> Open(
      const std::string& path, size_t reserve);
  ~ResultFile();
  ResultFile(const ResultFile&) = delete;
  ResultFile& operator=(const ResultFile&) = delete;

  // Overwrites the blanks by `text`, and closes the file. Call it once.
  absl::Status Write(const std::string& text);

 private:
  ResultFile(const std::string& path, int fd) : path_(path), fd_(fd) {}
  absl::Status Reserve(size_t bytes);
  absl::Status WriteAll(const std::string& text);
  absl::Status Error(const char* operation) const;  // from errno

  const std::string path_;
  int fd_;  // -1 once closed
  bool regular_ = false;
};

}  // namespace bench
}  // namespace penstock

#endif  // PENSTOCK_BENCH_RPC_REPORT_RESULT_FILE_H_
