// Chooses the largest size of message that a side sends eagerly over one path.
// At that size, an eager message takes as much time as an announced message.
// The times for s bytes are:
//
//   eager      copying, on both sides      2 c s
//   announced  fixed costs, on both sides  2 a
//              exposing the bytes          e s
//              waiting for the read        w
//
// The times are equal at s = (w + 2 a) / (2 c - e). The sender measures c, a
// and e on its own side while it sends, and assumes the same values for the
// peer. The time from announcement to release spans four one-way latencies:
// announcement, request, answer and release. The answer arrives two one-way
// latencies later than an eager message would. Therefore w is half of the fixed
// part of that time. w is 0 if the peer does not have to send a request.
//
// Other messages wait behind an eager message, as they wait behind the pieces
// of an announced message. An eager message may therefore occupy the link only
// as long as such pieces may (see ChunkTuner).

#ifndef PENSTOCK_TRANSPORT_PROTOCOL_EAGER_TUNER_H_
#define PENSTOCK_TRANSPORT_PROTOCOL_EAGER_TUNER_H_

#include <cstddef>
#include <cstdint>

#include "transport/protocol/line_fit.h"
#include "transport/protocol/stepped_size.h"

namespace penstock {
namespace protocol {

// The tuner of one path. Has no clock. The caller need not report every
// message. Not thread-safe.
class EagerTuner {
 public:
  // Makes a tuner. `peer_asks`: the peer has to request announced messages,
  // because this side does not push them, and the peer does not load them.
  EagerTuner(const SizeBounds& bounds, bool peer_asks)
      : size_(bounds), start_(bounds.start), peer_asks_(peer_asks) {}

  size_t eager_max_bytes() const { return size_.value(); }
  bool adapts() const { return !size_.is_fixed(); }

  // Report the time that this side spent on an eager message, and on an
  // announced message. Report only sizes near the current size limit: because
  // of caches and allocators, times do not grow linearly.
  void OnCopied(size_t bytes, uint64_t ns);
  void OnAnnounced(size_t bytes, uint64_t ns);
  // Reports the time from announcement to release of a message. Call only if no
  // other message was announced meanwhile.
  void OnReleased(size_t bytes, uint64_t ns);

 private:
  void Settle();
  // Returns the largest eager size that does not delay other messages too long.
  double FairSize(double waiting) const;

  SteppedSize size_;
  size_t start_;
  bool peer_asks_;
  LineFit copying_ = LineFit::BegunCold();
  LineFit announcing_ = LineFit::BegunCold();
  LineFit releasing_ = LineFit::BegunCold();
};

}  // namespace protocol
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_PROTOCOL_EAGER_TUNER_H_
