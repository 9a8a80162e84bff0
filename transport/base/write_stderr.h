// Writes to standard error without waiting for its reader.

#ifndef PENSTOCK_TRANSPORT_BASE_WRITE_STDERR_H_
#define PENSTOCK_TRANSPORT_BASE_WRITE_STDERR_H_

#include "absl/strings/string_view.h"

namespace penstock {
namespace base {

// Writes `line` if there is room for it now. Returns true if the line was
// written. Does not wait for a full pipe, socket or terminal. Leaves the
// descriptor's mode unchanged, because other processes share the descriptor.
// Needs a line of at most PIPE_BUF bytes. Thread-safe.
bool WriteToStderr(absl::string_view line);

}  // namespace base
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_BASE_WRITE_STDERR_H_
