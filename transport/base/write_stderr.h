// Standard error, as a place that nobody has to read.

#ifndef PENSTOCK_TRANSPORT_BASE_WRITE_STDERR_H_
#define PENSTOCK_TRANSPORT_BASE_WRITE_STDERR_H_

#include "absl/strings/string_view.h"

namespace penstock {
namespace base {

// Writes `line`, of at most PIPE_BUF bytes, if there is room for it now: a full
// pipe, socket or terminal is not waited for, and the descriptor, which others
// share, stays blocking for them. Whether it was written. Thread-safe.
bool WriteToStderr(absl::string_view line);

}  // namespace base
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_BASE_WRITE_STDERR_H_
