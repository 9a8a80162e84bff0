// Joins the fragments of a frame. No other frame may come between fragments, so
// one buffer suffices for the whole session.

#ifndef PENSTOCK_TRANSPORT_PROTOCOL_REASSEMBLER_H_
#define PENSTOCK_TRANSPORT_PROTOCOL_REASSEMBLER_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "transport/wire/frame.h"

namespace penstock {
namespace protocol {

// The fragments of one session. Not thread-safe.
class Reassembler {
 public:
  // The limit of a frame's payload. Long metadata arrives in fragments.
  // Messages above the eager limit are announced instead.
  static constexpr size_t kMaxBytes = 16 * 1024 * 1024;

  // Keeps up to `max_metadata_bytes` of metadata, plus one byte, so that the
  // decoder detects metadata that is too long.
  explicit Reassembler(size_t max_metadata_bytes = kMaxBytes - 1)
      : max_metadata_bytes_(max_metadata_bytes) {}

  // Handles the next frame, in order. Sets `*whole` if the frame completes a
  // payload. If was_fragmented(), the payload is joined(), valid until the next
  // call; otherwise it is `payload`. Returns INVALID_ARGUMENT if the fragments
  // do not belong together, or exceed kMaxBytes.
  absl::Status Accept(const wire::FrameHeader& header,
                      absl::Span<const uint8_t> payload, bool* whole);

  bool was_fragmented() const { return was_fragmented_; }
  absl::Span<const uint8_t> joined() const {
    return {reinterpret_cast<const uint8_t*>(joined_.data()), joined_.size()};
  }

 private:
  // Returns the limit of kept bytes for a frame of this type.
  size_t KeptBytes(wire::FrameType type) const;

  const size_t max_metadata_bytes_;
  bool in_progress_ = false;
  bool was_fragmented_ = false;
  wire::FrameHeader first_;
  size_t received_ = 0;  // bytes of the payload, kept or not
  std::string joined_;
};

}  // namespace protocol
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_PROTOCOL_REASSEMBLER_H_
