// A result file. Opening it makes sure, before the measuring, that it can be
// written.

#ifndef PENSTOCK_BENCH_RPC_RESULT_FILE_H_
#define PENSTOCK_BENCH_RPC_RESULT_FILE_H_

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace penstock {
namespace bench {

// An open file. So that a minute of measuring is not lost to a full disk,
// opening a regular file also fills it with `reserve` blanks. A run that is cut
// short leaves those; no program takes them for a result.
class ResultFile {
 public:
  // Errors name the path and the cause.
  static absl::StatusOr<std::unique_ptr<ResultFile>> Open(
      const std::string& path, size_t reserve);
  ~ResultFile();
  ResultFile(const ResultFile&) = delete;
  ResultFile& operator=(const ResultFile&) = delete;

  // Writes `text` in place of the blanks, and closes the file. Call it once.
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

#endif  // PENSTOCK_BENCH_RPC_RESULT_FILE_H_
