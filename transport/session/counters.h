// Counters of a session's traffic, streams and stalls.

#ifndef PENSTOCK_TRANSPORT_SESSION_COUNTERS_H_
#define PENSTOCK_TRANSPORT_SESSION_COUNTERS_H_

#include <cstddef>
#include <cstdint>

#include "transport/metrics/histogram.h"
#include "transport/metrics/labels.h"

namespace penstock {
namespace session {

// Counts of a session, as plain numbers. The session's parts update them under
// the owner's lock. A message counts for the fabric that was in use at the time
// of sending or announcing.
struct Counters {
  struct Traffic {
    uint64_t messages = 0;
    uint64_t bytes = 0;
  };
  using OfFabric = Traffic[metrics::kKinds][metrics::kDirections];

  // The fabrics over which the session currently sends and receives.
  metrics::Fabric sending = metrics::Fabric::kTcp;
  metrics::Fabric receiving = metrics::Fabric::kTcp;
  OfFabric traffic[metrics::kFabrics];
  // Numbers for keepalive: packets received over any path, and stream frames
  // sent.
  uint64_t inputs = 0;
  uint64_t stream_frames_sent = 0;

  uint64_t streams_started = 0;
  uint64_t streams_reset = 0;  // ended without a status of the server's
  metrics::Histogram client_streams[metrics::kFabrics];
  metrics::Histogram announced[metrics::kFabrics];

  uint64_t credit_stalls[metrics::kFabrics] = {};
  uint64_t credit_stall_ns[metrics::kFabrics] = {};
  uint64_t window_stalls[metrics::kFabrics] = {};
  uint64_t paths_lost[metrics::kFabrics] = {};
  uint64_t paths_regained[metrics::kFabrics] = {};

  void OnSent(metrics::Kind kind, size_t bytes) {
    Count(sending, kind, metrics::Direction::kSent, bytes);
  }
  void OnReceived(metrics::Kind kind, size_t bytes) {
    Count(receiving, kind, metrics::Direction::kReceived, bytes);
  }

  // Sums over all fabrics and kinds.
  uint64_t messages_sent() const {
    return Sum(metrics::Direction::kSent).messages;
  }
  uint64_t messages_received() const {
    return Sum(metrics::Direction::kReceived).messages;
  }
  uint64_t bytes_sent() const { return Sum(metrics::Direction::kSent).bytes; }
  uint64_t bytes_received() const {
    return Sum(metrics::Direction::kReceived).bytes;
  }

 private:
  void Count(metrics::Fabric fabric, metrics::Kind kind,
             metrics::Direction direction, size_t bytes) {
    Traffic& to = traffic[static_cast<int>(fabric)][static_cast<int>(kind)]
                         [static_cast<int>(direction)];
    ++to.messages;
    to.bytes += bytes;
  }
  Traffic Sum(metrics::Direction direction) const {
    Traffic sum;
    for (const OfFabric& of_fabric : traffic) {
      for (const auto& of_kind : of_fabric) {
        sum.messages += of_kind[static_cast<int>(direction)].messages;
        sum.bytes += of_kind[static_cast<int>(direction)].bytes;
      }
    }
    return sum;
  }
};

}  // namespace session
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_SESSION_COUNTERS_H_
