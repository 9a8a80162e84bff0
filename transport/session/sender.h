// Sends a session's frames over its current path. Loses no frame when a path is
// lost.

#ifndef PENSTOCK_TRANSPORT_SESSION_SENDER_H_
#define PENSTOCK_TRANSPORT_SESSION_SENDER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "transport/base/buffer_pool.h"
#include "transport/base/fifo.h"
#include "transport/fabric/fabric.h"
#include "transport/protocol/outbox.h"
#include "transport/protocol/send_log.h"
#include "transport/session/budget.h"
#include "transport/wire/frame.h"

namespace penstock {
namespace session {

// A queue of outgoing frames. Flush() sends the frames in the order of the
// calls, as far as the paths have credit. Call Flush() again when a path is
// writable. Not thread-safe.
class Sender {
 public:
  // Makes a sender. All three arguments must outlive the sender. Charges
  // `budget` for frames that wait.
  Sender(fabric::Endpoint* lifeline, base::BufferPool* buffers, Budget* budget);

  // Adds a sequenced frame; see Outbox::Add.
  void Add(const wire::FrameHeader& header, absl::string_view payload,
           uint64_t ack);
  // Adds a control frame: the hello, or a frame about a path. Control frames go
  // over the lifeline, ahead of the sequenced frames.
  void AddControl(wire::FrameHeader header, absl::string_view payload,
                  uint64_t ack);
  // Sends an acknowledgement frame. Returns false if there is no credit.
  bool SendAck(uint64_t ack);
  // Returns the highest acknowledgement that has been handed to a path.
  // Acknowledgements in waiting frames do not count.
  uint64_t acknowledged() const { return acknowledged_; }

  // Sends frames over `path` from now on. `path` must outlive the next
  // LoseFastPath().
  void UseFastPath(fabric::Endpoint* path);
  // Drops the fast path. Sends over the lifeline from now on, starting with the
  // frames that the peer has not acknowledged.
  void LoseFastPath();

  // Sends the first piece of an exposed region over the lifeline without a
  // request. The piece follows the frames that were added before.
  void PushBehind(const fabric::RemoteRegion& region) {
    to_push_.push_back(region);
  }

  // Handles the peer's acknowledgement. Returns INVALID_ARGUMENT if the peer
  // acknowledges a frame that was never sent.
  absl::Status OnAck(uint64_t ack);
  void Flush();

  // Returns the path for the next frames.
  fabric::Endpoint* active() const {
    return fast_path_ != nullptr ? fast_path_ : lifeline_;
  }
  // Returns true if all added frames were handed to a path.
  bool idle() const {
    return control_.empty() && resend_.empty() && outbox_.empty();
  }
  // Returns true if Flush() has something to send.
  bool has_output() const { return !idle() || !to_push_.empty(); }

 private:
  bool SendControl();
  bool SendAgain();
  bool SendFront();
  bool SendFrontOverLifeline();
  void OnLeft(uint64_t ack, size_t bytes, size_t answer_bytes);

  fabric::Endpoint* const lifeline_;
  base::BufferPool* const buffers_;
  Budget* const budget_;
  fabric::Endpoint* fast_path_ = nullptr;
  protocol::Outbox outbox_;
  protocol::SendLog log_;
  base::Fifo<std::string> control_;
  base::Fifo<std::string> resend_;
  std::vector<fabric::RemoteRegion> to_push_;
  uint64_t last_added_ = 0;
  uint64_t acknowledged_ = 0;
};

}  // namespace session
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_SESSION_SENDER_H_
