// Joins the fragments of a frame. They follow one another without a gap, so
// one buffer for the whole session is enough.

#ifndef PENSTOCK_TRANSPORT_PROTOCOL_REASSEMBLER_H_
#define PENSTOCK_TRANSPORT_PROTOCOL_REASSEMBLER_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "transport/wire/frame.h"

namespace penstock {
namespace protocol {

class Reassembler {
 public:
  // Metadata may be long, but not without bound; a message above the eager
  // limit is announced, never fragmented.
  static constexpr size_t kMaxBytes = 16 * 1024 * 1024;

  // Of metadata, no more than `max_metadata_bytes` and one byte are kept:
  // whoever decodes it sees that it is too much.
  explicit Reassembler(size_t max_metadata_bytes = kMaxBytes - 1)
      : max_metadata_bytes_(max_metadata_bytes) {}

  // Takes a delivered frame. `*whole` says that it completes one: then
  // joined() has its payload if was_fragmented(), until the next call, else the
  // frame's own is all.
  // INVALID_ARGUMENT: the fragments do not belong together or are too many.
  absl::Status Accept(const wire::FrameHeader& header,
                      absl::Span<const uint8_t> payload, bool* whole);

  bool was_fragmented() const { return was_fragmented_; }
  absl::Span<const uint8_t> joined() const {
    return {reinterpret_cast<const uint8_t*>(joined_.data()), joined_.size()};
  }

 private:
  // Of a frame of this type, so much is kept.
  size_t KeptBytes(wire::FrameType type) const;

  const size_t max_metadata_bytes_;
  bool in_progress_ = false;
  bool was_fragmented_ = false;
  wire::FrameHeader first_;
  size_t received_ = 0;  // of its payload, kept or not
  std::string joined_;
};

}  // namespace protocol
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_PROTOCOL_REASSEMBLER_H_
