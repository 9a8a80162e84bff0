// Flow control of a stream: limits the unread bytes at the receiver.

#ifndef PENSTOCK_TRANSPORT_PROTOCOL_STREAM_WINDOW_H_
#define PENSTOCK_TRANSPORT_PROTOCOL_STREAM_WINDOW_H_

#include <algorithm>
#include <cstdint>

namespace penstock {
namespace protocol {

// The cost of a message in addition to its bytes, in bytes, so that empty
// messages are limited too. Part of the protocol: both sides must use the same
// number.
constexpr uint64_t kMessageOverhead = 64;

inline uint64_t MessageCost(uint64_t bytes) { return bytes + kMessageOverhead; }

// The sender's side. A message of any size may be sent while open(), that is,
// while the unread bytes are fewer than the window. The last message may
// therefore exceed the window, and the receiver holds at most the window and
// one message. Not thread-safe.
class SendWindow {
 public:
  explicit SendWindow(uint64_t window) : window_(window) {}

  bool open() const { return used_ < window_; }
  uint64_t used() const { return used_; }
  void Use(uint64_t cost) { used_ += cost; }
  // Adds credit from the receiver, but not more than is used: a peer that
  // returns too much credit gains nothing. Returns the accepted amount.
  uint64_t GiveBack(uint64_t cost) {
    const uint64_t given = std::min(used_, cost);
    used_ -= given;
    return given;
  }

 private:
  const uint64_t window_;
  uint64_t used_ = 0;
};

// The receiver's side. Collects the cost of read messages, and returns it in
// quarters of the window, so that one kCredit frame covers many messages. If
// the sender is blocked, at least a whole window is unread. Reading these
// messages returns credit long before the sender is idle. Not thread-safe.
class ReceiveWindow {
 public:
  explicit ReceiveWindow(uint64_t window) : threshold_(window / 4) {}

  // Adds the cost of a message that was read. Returns the credit to send now,
  // or 0.
  uint64_t Consume(uint64_t cost) {
    owed_ += cost;
    if (owed_ < threshold_) return 0;
    uint64_t owed = owed_;
    owed_ = 0;
    return owed;
  }

 private:
  const uint64_t threshold_;
  uint64_t owed_ = 0;
};

}  // namespace protocol
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_PROTOCOL_STREAM_WINDOW_H_
