// What penstock/record.h has recorded, to be replayed.

#ifndef PENSTOCK_BENCH_RPC_RECORDING_H_
#define PENSTOCK_BENCH_RPC_RECORDING_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace penstock {
namespace bench {

// Of a replay: as fast as it goes.
constexpr double kMaxSpeed = 0;

struct RecordedMessage {
  int64_t after_us;  // the call's begin
  size_t bytes;
  bool sent;  // by the server
};

struct RecordedCall {
  size_t client = 0;  // from 0 on
  std::string method;
  int64_t begun_us = 0;
  int64_t ended_after_us = 0;
  int status = 0;
  std::vector<RecordedMessage> messages;  // in the server's order

  int64_t ended_us() const { return begun_us + ended_after_us; }
  // One request, one reply, and all is well: replayed by a unary RPC. Any other
  // one is replayed by a stream. (On the wire they are alike.)
  bool is_unary() const;
};

// The calls in the order in which they began. There is at least one.
struct Recording {
  // Replaying takes a channel for each client, and a thread for each call that
  // is open at once. Further clients share the channels of the first, by turns:
  // of connections that come and go, most likely of those that have gone.
  static constexpr size_t kMaxClients = 256;
  static constexpr size_t kMaxOpenCalls = 512;

  std::vector<RecordedCall> calls;
  size_t clients = 0;           // kMaxClients at most
  size_t recorded_clients = 0;  // perhaps more
  size_t messages = 0;
  size_t bytes = 0;         // of all messages, both ways
  uint64_t left_out = 0;    // calls that the recorder had no room for, or cut
  uint64_t unfinished = 0;  // calls that had not ended, whose status is 0
  bool goes_on = false;     // the file has more than replaying can hold

  // The calls of one client, in order.
  std::vector<size_t> CallsOf(size_t client) const;
};

// Of `calls`, which are in order: how many are open at once, at most.
size_t MostOpen(const Recording& recording, const std::vector<size_t>& calls);

// What replaying holds in memory: some 100 MB.
struct RecordingLimits {
  size_t calls = 1000 * 1000;
  size_t messages = 4 * 1000 * 1000;
  size_t file_bytes = size_t{1} << 30;  // uncompressed
};

// Reads a file, up to the limits: what follows is left out. Errors name the
// path, the line and what is wrong there.
absl::StatusOr<Recording> LoadRecording(const std::string& path,
                                        const RecordingLimits& limits = {});

}  // namespace bench
}  // namespace penstock

#endif  // PENSTOCK_BENCH_RPC_RECORDING_H_
