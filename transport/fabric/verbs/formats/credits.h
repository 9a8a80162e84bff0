// Counts the packets that may be in flight.

#ifndef PENSTOCK_TRANSPORT_FABRIC_VERBS_FORMATS_CREDITS_H_
#define PENSTOCK_TRANSPORT_FABRIC_VERBS_FORMATS_CREDITS_H_

#include <cstdint>
#include <utility>

#include "absl/status/status.h"

namespace penstock {
namespace fabric {
namespace verbs {

// The credits of one side of a connection. Each side posts a fixed number of
// receives. A packet from the peer uses one receive, and costs the peer one
// credit. Once the receive's buffer is posted again, the next packet to the
// peer gives the credit back.
//
// Follows the rule of SMB Direct ([MS-SMBD] 3.1.5.1): the last credit is only
// for a packet that grants credits. A packet that takes its sender's last
// credit therefore gives the receiver at least one credit, and the two sides
// never run out at the same time. Requires at least four receives on each side,
// so that granting costs fewer credits than it grants. Not thread-safe.
class Credits {
 public:
  // `receives` is the number of receives posted by this side, and `peers` the
  // number posted by the peer.
  Credits(uint16_t receives, uint16_t peers)
      : receives_(receives), limit_(peers), available_(peers) {}

  bool MaySend() const {
    return available_ > 1 || (available_ == 1 && owed_ > 0);
  }
  // Uses up a credit for a packet. Returns the credits that the packet grants
  // to the peer. Requires MaySend().
  uint16_t TakeForSend() {
    --available_;
    return std::exchange(owed_, uint16_t{0});
  }
  // Returns true if enough credits are owed to justify a separate packet.
  bool MustGrant() const { return owed_ >= receives_ / 2 && available_ > 0; }

  // Records that a packet has arrived, and that its buffer is posted again. The
  // next packet to the peer gives this credit back.
  void OnReceived() { ++owed_; }
  // Adds the credits that the peer grants. Returns DATA_LOSS if the peer grants
  // more credits than were used.
  absl::Status OnGranted(uint16_t credits) {
    if (credits > limit_ - available_) {
      return absl::DataLossError("the peer grants more credits than it has");
    }
    available_ += credits;
    return absl::OkStatus();
  }

 private:
  const uint16_t receives_;
  const uint16_t limit_;
  uint16_t available_;
  uint16_t owed_ = 0;
};

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_VERBS_FORMATS_CREDITS_H_
