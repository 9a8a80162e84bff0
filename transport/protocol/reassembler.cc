#include "transport/protocol/reassembler.h"

#include <algorithm>

namespace penstock {
namespace protocol {

namespace {

constexpr size_t kMaxKeptBytes = 256 * 1024;

}  // namespace

constexpr size_t Reassembler::kMaxBytes;

absl::Status Reassembler::Accept(const wire::FrameHeader& header,
                                 absl::Span<const uint8_t> payload,
                                 bool* whole) {
  const bool more = (header.flags & wire::kMoreFragments) != 0;
  *whole = !more;
  was_fragmented_ = in_progress_;
  if (!in_progress_ && !more) return absl::OkStatus();
  if (!in_progress_) {
    first_ = header;
    received_ = 0;
    joined_.clear();  // keeps its memory: the next frame is often as long
    if (joined_.capacity() > kMaxKeptBytes) joined_.shrink_to_fit();
  } else if (header.type != first_.type || header.stream != first_.stream) {
    return absl::InvalidArgumentError("a fragmented frame was interrupted");
  }
  received_ += payload.size();
  if (received_ > kMaxBytes) {
    return absl::InvalidArgumentError("a fragmented frame is too long");
  }
  const size_t kept = std::min(received_, KeptBytes(header.type));
  joined_.append(reinterpret_cast<const char*>(payload.data()),
                 kept - joined_.size());
  in_progress_ = more;
  return absl::OkStatus();
}

size_t Reassembler::KeptBytes(wire::FrameType type) const {
  const bool is_metadata =
      type == wire::FrameType::kHeaders || type == wire::FrameType::kTrailers;
  return is_metadata ? std::min(max_metadata_bytes_, kMaxBytes - 1) + 1
                     : kMaxBytes;
}

}  // namespace protocol
}  // namespace penstock
