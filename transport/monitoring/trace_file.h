// Writes a trace of this process to a file.

#ifndef PENSTOCK_TRANSPORT_MONITORING_TRACE_FILE_H_
#define PENSTOCK_TRANSPORT_MONITORING_TRACE_FILE_H_

#include <string>

#include "absl/status/status.h"

namespace penstock {
namespace monitoring {

// Writes events to `path` from now on, in Chrome's trace format: a JSON array,
// which is complete after each write. "%p" in the path stands for the pid. A
// separate thread writes ten times a second, and once more at exit. The file
// grows to at most 256 MiB; later events are dropped and counted. Replaces an
// older file. Call WriteTraceTo() once.
//
// Fails in these cases: the file cannot be written, is not a regular file (but
// a device, a pipe or a symbolic link), belongs to another user, has a second
// hard link, or is being written by another process.
absl::Status WriteTraceTo(const std::string& path);

}  // namespace monitoring
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_MONITORING_TRACE_FILE_H_
