// Puts frames into order. They may come over two paths, and more than once.

#ifndef PENSTOCK_TRANSPORT_PROTOCOL_RECEIVE_ORDER_H_
#define PENSTOCK_TRANSPORT_PROTOCOL_RECEIVE_ORDER_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "transport/wire/frame.h"

namespace penstock {
namespace protocol {

// Holds back frames that come before their turn. That happens only while a
// session changes its path. Not thread-safe.
class ReceiveOrder {
 public:
  // More than an honest peer has under way when the path changes.
  static constexpr size_t kMaxHeldBytes = 4 * 1024 * 1024;

  struct HeldFrame {
    wire::FrameHeader header;
    std::string payload;
  };

  enum class Verdict {
    kDeliver,    // it is the next one: deliver it now
    kDuplicate,  // it came before: drop it
    kHeld,       // it is early: a copy is held back
  };

  // Decides what to do with a sequenced frame. Returns RESOURCE_EXHAUSTED if
  // more than kMaxHeldBytes would be held back.
  absl::Status Accept(const wire::Frame& frame, Verdict* verdict);
  // Call after each delivery. Moves the next frame to `*frame`, to be delivered
  // now, if it was held back. Else returns false.
  bool TakeNext(HeldFrame* frame);

  // Returns the sequence number up to which all frames have been delivered.
  uint64_t delivered() const { return delivered_; }
  // Whether frames are held back.
  bool holding() const { return !held_.empty(); }

 private:
  uint64_t delivered_ = 0;
  size_t held_bytes_ = 0;
  std::map<uint64_t, HeldFrame> held_;
};

}  // namespace protocol
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_PROTOCOL_RECEIVE_ORDER_H_
