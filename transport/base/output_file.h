// Opens files that the library writes: on threads of the library, and at exit
// on the program's thread.

#ifndef PENSTOCK_TRANSPORT_BASE_OUTPUT_FILE_H_
#define PENSTOCK_TRANSPORT_BASE_OUTPUT_FILE_H_

#include <signal.h>

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "transport/base/unique_fd.h"

namespace penstock {
namespace base {

// Opens `path` for writing, readable by this user only, and empties it. Does
// not block. `what` ("write a trace to") begins the text of an error. Fails if
// the file cannot be written, or is a device, a pipe or a symbolic link. Also
// fails if another process has opened the file by this function and is still
// writing. The error names the remedy, if there is one.
absl::StatusOr<UniqueFd> OpenOutputFile(const std::string& path,
                                        absl::string_view what);

// Protects a thread from SIGXFSZ, which would kill the program, while the
// object lives. A write beyond the limit on file sizes then fails with EFBIG.
// Leaves the program's handler of that signal unchanged.
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

// Returns a status with the cause of a failed write. Names the remedy if a
// limit or a full disk caused the failure.
absl::Status WriteError(int error_number);

}  // namespace base
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_BASE_OUTPUT_FILE_H_
