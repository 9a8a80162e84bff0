// How much one stream may have under way to a reader that has not read it.

#ifndef PENSTOCK_TRANSPORT_PROTOCOL_STREAM_WINDOW_H_
#define PENSTOCK_TRANSPORT_PROTOCOL_STREAM_WINDOW_H_

#include <algorithm>
#include <cstdint>

namespace penstock {
namespace protocol {

// A message counts with this beside its bytes, so that empty ones are bounded
// too. Both sides must agree on it: part of the protocol.
constexpr uint64_t kMessageOverhead = 64;

inline uint64_t MessageCost(uint64_t bytes) { return bytes + kMessageOverhead; }

// The sender's side. A message may go while less than the window is under way:
// it may overshoot by one message, so a message larger than the window passes,
// and memory stays bounded by the window and one message.
class SendWindow {
 public:
  explicit SendWindow(uint64_t window) : window_(window) {}

  bool open() const { return used_ < window_; }
  uint64_t used() const { return used_; }
  void Use(uint64_t cost) { used_ += cost; }
  // A peer that gives back more than it got gains nothing. Returns how much it
  // was.
  uint64_t GiveBack(uint64_t cost) {
    const uint64_t given = std::min(used_, cost);
    used_ -= given;
    return given;
  }

 private:
  const uint64_t window_;
  uint64_t used_ = 0;
};

// The receiver's side: gathers what was read and gives it back in quarters of
// the window, so that credits cost one frame in many messages. A sender that
// waits has at least a whole window under way, so it never waits in vain.
class ReceiveWindow {
 public:
  explicit ReceiveWindow(uint64_t window) : threshold_(window / 4) {}

  // Returns what to give back now, or 0.
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
