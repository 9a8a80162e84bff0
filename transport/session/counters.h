// What a session has sent and received.

#ifndef PENSTOCK_TRANSPORT_SESSION_COUNTERS_H_
#define PENSTOCK_TRANSPORT_SESSION_COUNTERS_H_

#include <cstdint>

namespace penstock {
namespace session {

struct Counters {
  uint64_t messages_sent = 0;
  uint64_t messages_received = 0;
  uint64_t bytes_sent = 0;
  uint64_t bytes_received = 0;
  // For keepalive: whatever came over a path, and frames of streams sent.
  uint64_t inputs = 0;
  uint64_t stream_frames_sent = 0;
};

}  // namespace session
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_SESSION_COUNTERS_H_
