// A result file that is known to be writable before the measuring begins.

#ifndef PENSTOCK_BENCH_RPC_JSON_FILE_H_
#define PENSTOCK_BENCH_RPC_JSON_FILE_H_

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace penstock {
namespace bench {

// An open file. A minute of measuring must not end at a full disk, so opening
// a regular file also fills it with `reserve` blanks; a run that is cut short
// leaves those, which no JSON parser takes for a result.
class JsonFile {
 public:
  // Errors name the path and the cause.
  static absl::StatusOr<std::unique_ptr<JsonFile>> Open(const std::string& path,
                                                        size_t reserve);
  ~JsonFile();
  JsonFile(const JsonFile&) = delete;
  JsonFile& operator=(const JsonFile&) = delete;

  // Puts `text` in the place of the blanks and closes the file. Call once.
  absl::Status Write(const std::string& text);

 private:
  JsonFile(const std::string& path, int fd) : path_(path), fd_(fd) {}
  absl::Status Reserve(size_t bytes);
  absl::Status WriteAll(const std::string& text);
  absl::Status Error(const char* operation) const;  // from errno

  const std::string path_;
  int fd_;  // -1 once closed
  bool regular_ = false;
};

}  // namespace bench
}  // namespace penstock

#endif  // PENSTOCK_BENCH_RPC_JSON_FILE_H_
