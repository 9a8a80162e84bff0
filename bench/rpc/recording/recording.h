// Reads recordings of penstock/record.h for replaying.

#ifndef PENSTOCK_BENCH_RPC_RECORDING_RECORDING_H_
#define PENSTOCK_BENCH_RPC_RECORDING_RECORDING_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace penstock {
namespace bench {

// The value of a replay's `speed` that stands for "without pauses".
constexpr double kMaxSpeed = 0;

struct RecordedMessage {
  int64_t after_us;  // after the beginning of the call
  size_t bytes;
  bool sent;  // true if the server sent it, false if the client did
};

struct RecordedCall {
  size_t client = 0;  // starts at 0
  std::string method;
  int64_t begun_us = 0;
  int64_t ended_after_us = 0;
  int status = 0;
  std::vector<RecordedMessage> messages;  // in the server's order

  int64_t ended_us() const { return begun_us + ended_after_us; }
  // Returns true for a successful call with one request and one reply. A replay
  // makes such a call as a unary RPC, and any other call as a stream. (A stream
  // with one message each way is recorded in the same way.)
  bool is_unary() const;
};

// The calls, in the order in which they began. Not empty.
struct Recording {
  // Limits of a replay, which uses a channel per client and a thread per open
  // call. Further clients share the channels of earlier clients. If connections
  // come and go, most of these earlier clients are no longer connected.
  static constexpr size_t kMaxClients = 256;
  static constexpr size_t kMaxOpenCalls = 512;

  std::vector<RecordedCall> calls;
  size_t clients = 0;           // at most kMaxClients
  size_t recorded_clients = 0;  // possibly more
  size_t messages = 0;
  size_t bytes = 0;  // of all messages, both ways
  // The number of calls that the recording lacks or has only in part.
  uint64_t left_out = 0;
  uint64_t unfinished = 0;  // calls that had not ended; their status is 0
  bool goes_on = false;     // the file exceeds the limits of a replay

  // Returns the calls of one client, in order.
  std::vector<size_t> CallsOf(size_t client) const;
};

// Returns the largest number of `calls` that are open at the same time. `calls`
// must be in order.
size_t MostOpen(const Recording& recording, const std::vector<size_t>& calls);

// Limits on a recording, which bound a replay's memory to about 100 MB.
struct RecordingLimits {
  size_t calls = 1000 * 1000;
  size_t messages = 4 * 1000 * 1000;
  size_t file_bytes = size_t{1} << 30;  // uncompressed
};

// Reads a recording from a file up to the limits, and ignores the rest. Errors
// name the path, the line and the problem.
absl::StatusOr<Recording> LoadRecording(const std::string& path,
                                        const RecordingLimits& limits = {});

}  // namespace bench
}  // namespace penstock

#endif  // PENSTOCK_BENCH_RPC_RECORDING_RECORDING_H_
