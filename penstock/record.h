// Records the traffic of this process's gRPC servers. A benchmark can replay
// the recording.
//
// A recording holds for each call its begin, end, method, status and
// connection, and for each message its time and size, but no contents of
// messages or metadata, and no name of a peer. docs/replay.md describes the
// format, and how to replay it.
//
// PENSTOCK_RECORD=FILE records without a line of code, from the first channel
// or server over Penstock on.

#ifndef PENSTOCK_RECORD_H_
#define PENSTOCK_RECORD_H_

#include <string>

#include "absl/status/status.h"

namespace penstock {

// Records calls to the file `path`, which replaces an older file; "%p" in
// `path` stands for the pid. Records all gRPC servers of this process, enabled
// for Penstock or not. Records connections that are accepted from now on, not
// older ones, until the process exits. Call it at most once, and not in a
// process with PENSTOCK_RECORD.
//
// A separate thread writes the file, and takes no signals. Unwritten data is
// limited to 16 MiB plus 8 KiB for each open call, and the file to 64 MiB. Data
// beyond a limit is dropped, and the file says how much.
//
// If a write fails, as on a full disk, one line is logged and the recording
// ends; calls are not affected. If the process is killed, the recording lacks
// its last second, and the calls that were open. The child of a fork records
// nothing.
//
// Fails if the file cannot be written or is not a regular file (a device, a
// pipe, a symbolic link). FAILED_PRECONDITION: another process is writing the
// file, this process records already, or this gRPC cannot be recorded (another
// release, or in use before Penstock was loaded). RESOURCE_EXHAUSTED: no thread
// or no memory.
absl::Status RecordCalls(const std::string& path);

// Writes the rest of the recording and ends it, however it was begun. exit()
// does this too, but _exit() does not. Does not record calls that are still
// open, or that come later. Does nothing if there is no recording.
void FinishRecording();

}  // namespace penstock

#endif  // PENSTOCK_RECORD_H_
