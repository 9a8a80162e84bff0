// A file that the library writes by itself, on its own threads and at exit on
// the program's.

#ifndef PENSTOCK_TRANSPORT_BASE_OUTPUT_FILE_H_
#define PENSTOCK_TRANSPORT_BASE_OUTPUT_FILE_H_

#include <signal.h>

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "transport/base/unique_fd.h"

namespace penstock {
namespace base {

// Opens `path` to be written from its begin on, readable by this user only, and
// empties it. Does not block. Returns an error, which begins with `what`
// ("write a trace to"), if it cannot be written, is no file (a device, a pipe,
// a symbolic link), or is being written by another process that opened it so.
absl::StatusOr<UniqueFd> OpenOutputFile(const std::string& path,
                                        absl::string_view what);

// While there is one, what this thread writes beyond the limit on file sizes
// fails with EFBIG, and does not raise SIGXFSZ, which would kill the program.
// What the program does about that signal stays as it is.
class FileSizeSignalBlock {
 public:
  FileSizeSignalBlock();
  FileSizeSignalBlock(const FileSizeSignalBlock&) = delete;
  FileSizeSignalBlock& operator=(const FileSizeSignalBlock&) = delete;
  ~FileSizeSignalBlock();

 private:
  sigset_t before_;
  bool was_pending_;
};

// Returns why a write has failed, and what to do about a limit.
absl::Status WriteError(int error_number);

}  // namespace base
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_BASE_OUTPUT_FILE_H_
