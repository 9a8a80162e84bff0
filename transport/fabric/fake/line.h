// Computes the travel time of bytes in one direction of a fake link.

#ifndef PENSTOCK_TRANSPORT_FABRIC_FAKE_LINE_H_
#define PENSTOCK_TRANSPORT_FABRIC_FAKE_LINE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace penstock {
namespace fabric {
namespace fake {

struct Speed {
  uint64_t latency_ns = 0;
  double ns_per_byte = 0;
};

// One direction of a link. Items leave one after another at the line's speed.
// Each item arrives after the line's latency.
class Line {
 public:
  void set_speed(const Speed& speed) { speed_ = speed; }
  uint64_t latency_ns() const { return speed_.latency_ns; }

  // Sends `bytes` that can leave at `ready_ns`. Returns the time at which the
  // last byte arrives.
  uint64_t Carry(uint64_t ready_ns, size_t bytes) {
    free_ns_ = std::max(free_ns_, ready_ns) +
               static_cast<uint64_t>(speed_.ns_per_byte * bytes);
    return free_ns_ + speed_.latency_ns;
  }

 private:
  Speed speed_;
  uint64_t free_ns_ = 0;  // the time at which everything has left
};

}  // namespace fake
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_FAKE_LINE_H_
