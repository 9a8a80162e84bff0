// Opens a file that a thread of the library writes to by itself.

#ifndef PENSTOCK_TRANSPORT_BASE_OUTPUT_FILE_H_
#define PENSTOCK_TRANSPORT_BASE_OUTPUT_FILE_H_

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

}  // namespace base
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_BASE_OUTPUT_FILE_H_
