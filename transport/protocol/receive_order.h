// Puts frames that came over several paths, some of them twice, into order.

#ifndef PENSTOCK_TRANSPORT_PROTOCOL_RECEIVE_ORDER_H_
#define PENSTOCK_TRANSPORT_PROTOCOL_RECEIVE_ORDER_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "transport/wire/frame.h"

namespace penstock {
namespace protocol {

// Frames come early only while a session changes its path, so what is held
// back is bounded by what a peer may have under way; more is an attack.
class ReceiveOrder {
 public:
  static constexpr size_t kMaxHeldBytes = 4 * 1024 * 1024;

  struct HeldFrame {
    wire::FrameHeader header;
    std::string payload;
  };

  enum class Verdict { kDeliver, kDuplicate, kHeld };

  // Decides about a sequenced frame; kHeld copies it.
  // RESOURCE_EXHAUSTED: the peer is too far ahead.
  absl::Status Accept(const wire::Frame& frame, Verdict* verdict);
  // After a delivery: the held frame that is next, if it is there.
  bool TakeNext(HeldFrame* frame);

  // Everything up to here has been delivered.
  uint64_t delivered() const { return delivered_; }
  // Whether frames wait for one before them.
  bool holding() const { return !held_.empty(); }

 private:
  uint64_t delivered_ = 0;
  size_t held_bytes_ = 0;
  std::map<uint64_t, HeldFrame> held_;
};

}  // namespace protocol
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_PROTOCOL_RECEIVE_ORDER_H_
