// How many messages may be under way.

#ifndef PENSTOCK_TRANSPORT_FABRIC_VERBS_CREDITS_H_
#define PENSTOCK_TRANSPORT_FABRIC_VERBS_CREDITS_H_

#include <cstdint>
#include <utility>

#include "absl/status/status.h"

namespace penstock {
namespace fabric {
namespace verbs {

// Each side posts a fixed number of receives, and a message takes one until its
// buffer is posted again, which the next message to the peer says. The rule of
// SMB Direct ([MS-SMBD] 3.1.5.1) keeps both sides from running dry at once: the
// last credit is only for a message that grants some. So each message that
// leaves its sender without credit gives the receiver at least one.
// Needs at least four on both sides, so that what grants credits costs less
// than it grants. Not thread-safe.
class Credits {
 public:
  // `receives` is what this side has posted, `peers` what the peer has.
  Credits(uint16_t receives, uint16_t peers)
      : receives_(receives), limit_(peers), available_(peers) {}

  bool MaySend() const {
    return available_ > 1 || (available_ == 1 && owed_ > 0);
  }
  // A message leaves: what it grants. Needs MaySend().
  uint16_t TakeForSend() {
    --available_;
    return std::exchange(owed_, uint16_t{0});
  }
  // So much is owed that a message of its own is worth it.
  bool MustGrant() const { return owed_ >= receives_ / 2 && available_ > 0; }

  // A message has come and its buffer is posted again.
  void OnReceived() { ++owed_; }
  // DATA_LOSS: the peer grants what was never taken.
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

#endif  // PENSTOCK_TRANSPORT_FABRIC_VERBS_CREDITS_H_
