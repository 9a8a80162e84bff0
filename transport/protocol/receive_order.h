// Orders frames, which may arrive over two paths, and more than once.

#ifndef PENSTOCK_TRANSPORT_PROTOCOL_RECEIVE_ORDER_H_
#define PENSTOCK_TRANSPORT_PROTOCOL_RECEIVE_ORDER_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "transport/wire/frame.h"

namespace penstock {
namespace protocol {

// Holds back frames that arrive early. This happens only while a session
// changes its path. Not thread-safe.
class ReceiveOrder {
 public:
  // The limit of held bytes: more than an honest peer has in flight when the
  // path changes.
  static constexpr size_t kMaxHeldBytes = 4 * 1024 * 1024;

  struct HeldFrame {
    wire::FrameHeader header;
    std::string payload;
  };

  enum class Verdict {
    kDeliver,    // the next frame: deliver it now
    kDuplicate,  // a frame that came before: drop it
    kHeld,       // an early frame: a copy is held back
  };

  // Decides what to do with a sequenced frame. Returns RESOURCE_EXHAUSTED if
  // the held frames would exceed kMaxHeldBytes.
  absl::Status Accept(const wire::Frame& frame, Verdict* verdict);
  // Advances to the next frame in order; call after each delivery. If that
  // frame was held back, moves it to `*frame` for delivery now. Otherwise
  // returns false.
  bool TakeNext(HeldFrame* frame);

  // Returns the sequence number up to which all frames have been delivered.
  uint64_t delivered() const { return delivered_; }
  // Returns true if frames are held back.
  bool holding() const { return !held_.empty(); }

 private:
  uint64_t delivered_ = 0;
  size_t held_bytes_ = 0;
  std::map<uint64_t, HeldFrame> held_;
};

}  // namespace protocol
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_PROTOCOL_RECEIVE_ORDER_H_
