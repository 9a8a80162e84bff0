// Writes a trace of this process to a file.

#ifndef PENSTOCK_TRANSPORT_MONITORING_TRACE_FILE_H_
#define PENSTOCK_TRANSPORT_MONITORING_TRACE_FILE_H_

#include <string>

#include "absl/status/status.h"

namespace penstock {
namespace monitoring {

// Writes events to `path` from now on, in Chrome's trace format: a JSON array,
// which is whole after each write. "%p" in the path stands for the pid. An own
// thread writes, ten times a second, and once more at exit. The file grows to
// 256 MiB at most; what comes then is dropped and counted. Replaces an older
// file. Call it once.
//
// Returns an error if the file cannot be written, is none (a device, a pipe, a
// symbolic link), is another user's or has a second name, or is being written
// by another process.
absl::Status WriteTraceTo(const std::string& path);

}  // namespace monitoring
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_MONITORING_TRACE_FILE_H_
