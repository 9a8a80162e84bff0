// Gives what a session says the form of frames.

#ifndef PENSTOCK_TRANSPORT_SESSION_FRAME_WRITER_H_
#define PENSTOCK_TRANSPORT_SESSION_FRAME_WRITER_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "transport/protocol/receive_order.h"
#include "transport/session/counters.h"
#include "transport/session/sender.h"
#include "transport/wire/frame.h"

namespace penstock {
namespace session {

// Each frame acknowledges what has been delivered from the peer. Not
// thread-safe.
class FrameWriter {
 public:
  // All outlive it.
  FrameWriter(Sender* sender, const protocol::ReceiveOrder* received,
              Counters* counters)
      : sender_(sender), received_(received), counters_(counters) {}

  // Adds a frame that has its place in the session's order.
  void Add(wire::FrameType type, uint32_t stream, uint32_t aux,
           absl::string_view payload, uint8_t flags = 0);
  // Adds a frame about the session, which goes over the lifeline, ahead of
  // those that wait.
  void AddControl(wire::FrameType type, uint32_t aux,
                  absl::string_view payload);
  // Drops all that is added from now on: the session is over.
  void Stop() { stopped_ = true; }

 private:
  Sender* const sender_;
  const protocol::ReceiveOrder* const received_;
  Counters* const counters_;
  bool stopped_ = false;
};

}  // namespace session
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_SESSION_FRAME_WRITER_H_
