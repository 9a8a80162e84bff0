// Delivers the peer's sequenced frames in order.

#ifndef PENSTOCK_TRANSPORT_SESSION_ORDERED_INPUT_H_
#define PENSTOCK_TRANSPORT_SESSION_ORDERED_INPUT_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "transport/protocol/reassembler.h"
#include "transport/protocol/receive_order.h"
#include "transport/session/config.h"
#include "transport/session/events.h"
#include "transport/session/pongs.h"
#include "transport/session/sender.h"
#include "transport/session/streams.h"
#include "transport/wire/frame.h"

namespace penstock {
namespace session {

// Puts a session's input in order. Turns frames from both paths into events of
// the streams and of the session. Not thread-safe.
class OrderedInput {
 public:
  // Refers to all arguments, which must outlive this object.
  OrderedInput(const Config& config, Streams* streams, Pongs* pongs,
               SessionEvents* events)
      : streams_(streams),
        pongs_(pongs),
        events_(events),
        reassembler_(config.max_metadata_bytes) {}

  // Handles a sequenced frame. An error ends the session.
  absl::Status OnFrame(const wire::Frame& frame);
  // Delivers no more frames. Call when the session is over.
  void Stop() { stopped_ = true; }

  const protocol::ReceiveOrder& order() const { return order_; }
  // Counts bytes that arrived over the fast path. After enough bytes without an
  // acknowledgement, AcknowledgeIfDue() sends one.
  void CountBytes(size_t bytes) { received_since_ack_ += bytes; }
  // Sends an acknowledgement if one is due. Call after sending the waiting
  // frames, because each sent frame also carries an acknowledgement.
  void AcknowledgeIfDue(Sender* sender, bool uses_fast_path);

 private:
  absl::Status Deliver(const wire::FrameHeader& header,
                       absl::Span<const uint8_t> payload);
  absl::Status Dispatch(const wire::FrameHeader& header,
                        absl::Span<const uint8_t> payload);
  absl::Status OnNumber(const wire::FrameHeader& header,
                        absl::Span<const uint8_t> payload);

  Streams* const streams_;
  Pongs* const pongs_;
  SessionEvents* const events_;
  protocol::ReceiveOrder order_;
  protocol::Reassembler reassembler_;
  uint64_t received_since_ack_ = 0;
  bool stopped_ = false;
};

}  // namespace session
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_SESSION_ORDERED_INPUT_H_
