// Up to which size a side sends its messages eagerly over one path: the size
// at which that costs as much as to announce them.
//
//   eager      copies at both sides       2 c s
//   announced  what is fixed, both sides  2 a
//              exposing                   e s
//              waiting for the read       w
//
// for s bytes; equal at s = (w + 2 a) / (2 c - e). A sender knows what its own
// side's part takes, and takes the peer's for the same. c, a and e are measured
// as it sends. w is half of the fixed part of the time from an announcement to
// its release: announcement, question, answer and release go one way each, and
// the answer arrives two ways later than an eager message would. Where the peer
// has not to ask, w is 0.

#ifndef PENSTOCK_TRANSPORT_PROTOCOL_EAGER_TUNER_H_
#define PENSTOCK_TRANSPORT_PROTOCOL_EAGER_TUNER_H_

#include <cstddef>
#include <cstdint>

#include "transport/protocol/line_fit.h"
#include "transport/protocol/stepped_size.h"

namespace penstock {
namespace protocol {

// Has no clock, and needs to be told of a few messages only.
class EagerTuner {
 public:
  // `peer_asks`: what is announced is neither pushed nor used in place.
  EagerTuner(const SizeBounds& bounds, bool peer_asks)
      : size_(bounds), peer_asks_(peer_asks) {}

  size_t eager_max_bytes() const { return size_.value(); }
  bool adapts() const { return !size_.is_fixed(); }

  // How long this side's part took, of an eager message and of an announced
  // one. Of sizes near the limit: neither caches nor allocators are linear.
  void OnCopied(size_t bytes, uint64_t ns);
  void OnAnnounced(size_t bytes, uint64_t ns);
  // The time from the announcement to the release, with no other one between.
  void OnReleased(size_t bytes, uint64_t ns);

 private:
  void Settle();

  SteppedSize size_;
  bool peer_asks_;
  LineFit copying_;
  LineFit announcing_;
  LineFit releasing_;
};

}  // namespace protocol
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_PROTOCOL_EAGER_TUNER_H_
