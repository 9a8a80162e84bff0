// Builds a session's frames.

#ifndef PENSTOCK_TRANSPORT_SESSION_FRAME_WRITER_H_
#define PENSTOCK_TRANSPORT_SESSION_FRAME_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "transport/protocol/receive_order.h"
#include "transport/session/counters.h"
#include "transport/session/sender.h"
#include "transport/wire/frame.h"

namespace penstock {
namespace session {

// Adds frames to a Sender. Each frame acknowledges what was delivered from the
// peer. Not thread-safe.
class FrameWriter {
 public:
  // Makes a writer. `sender` and both other objects must outlive this object.
  FrameWriter(Sender* sender, const protocol::ReceiveOrder* received,
              Counters* counters)
      : sender_(sender), received_(received), counters_(counters) {}

  // Adds a sequenced frame.
  void Add(wire::FrameType type, uint32_t stream, uint32_t aux,
           absl::string_view payload, uint8_t flags = 0);
  // Holds a sequenced frame back until the next Add() or SendDeferred(), so
  // that it shares a packet, and a wake-up of the peer, with the next frame.
  // Once kMaxDeferred frames are held back, adds all of them.
  void Defer(wire::FrameType type, uint32_t stream, uint32_t aux,
             absl::string_view payload);
  bool has_deferred() const { return !deferred_.empty(); }
  // Adds the deferred frames.
  void SendDeferred();
  // Adds a frame about the session. Such a frame goes over the lifeline, ahead
  // of waiting sequenced frames.
  void AddControl(wire::FrameType type, uint32_t aux,
                  absl::string_view payload);
  // Drops all later frames. Call when the session is over.
  void Stop() {
    stopped_ = true;
    deferred_.clear();
  }

 private:
  // Caps the deferred frames. The cap bounds the memory of these frames, and
  // the memory that the peer cannot release before they arrive.
  static constexpr size_t kMaxDeferred = 8;
  struct Deferred {
    wire::FrameHeader header;
    std::string payload;
  };

  Sender* const sender_;
  const protocol::ReceiveOrder* const received_;
  Counters* const counters_;
  std::vector<Deferred> deferred_;
  bool stopped_ = false;
};

}  // namespace session
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_SESSION_FRAME_WRITER_H_
