// Records the traffic of this process's gRPC servers, to be repeated as a
// benchmark.
//
// A recording says of each call when it began and ended, its method and status,
// which of the connections it came over, and of each message when it came or
// went, and its size. It has nothing of what is in messages or metadata, and
// names no peer. docs/replay.md has the format, and how to replay it.
//
// PENSTOCK_RECORD=FILE records without a line of code, from the first channel
// or server over Penstock on.

#ifndef PENSTOCK_RECORD_H_
#define PENSTOCK_RECORD_H_

#include <string>

#include "absl/status/status.h"

namespace penstock {

// Records calls to the file `path`, which replaces an older one; "%p" in it
// stands for the pid. Recorded are all gRPC servers of this process, enabled
// for Penstock or not. Connections that exist already are not; those that are
// accepted from now on are, until the process exits. Call it at most once, and
// not in a process with PENSTOCK_RECORD.
//
// A thread of its own writes, which takes no signals. The memory for what is
// not yet written is bounded (16 MiB, and 8 KiB for each open call), and so is
// the file (64 MiB); what does not fit is left out, and the file says how much.
// If the file cannot be written any more, as on a full disk, one line is logged
// and the recording ends; calls do not notice, and cost nothing more. If the
// process is killed, the recording lacks its last second, and calls that were
// open. The child of a fork records nothing.
//
// Returns an error if the file cannot be written or is none (a device, a pipe,
// a symbolic link). FAILED_PRECONDITION: another process is writing it, this
// one records already, or this gRPC cannot be recorded (another release, or in
// use before Penstock was loaded). RESOURCE_EXHAUSTED: no thread or room.
absl::Status RecordCalls(const std::string& path);

// Writes what there is, and ends the recording, however it was begun. Happens
// by itself at exit(), but not at _exit(). Calls that are open, or come later,
// are not recorded. Does nothing if nothing is recorded.
void FinishRecording();

}  // namespace penstock

#endif  // PENSTOCK_RECORD_H_
