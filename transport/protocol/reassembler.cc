#include "transport/protocol/reassembler.h"

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
    joined_.clear();  // and keeps its memory, for the next is as long, often
    if (joined_.capacity() > kMaxKeptBytes) joined_.shrink_to_fit();
  } else if (header.type != first_.type || header.stream != first_.stream) {
    return absl::InvalidArgumentError("a fragmented frame was interrupted");
  }
  if (joined_.size() + payload.size() > kMaxBytes) {
    return absl::InvalidArgumentError("a fragmented frame is too long");
  }
  joined_.append(reinterpret_cast<const char*>(payload.data()), payload.size());
  in_progress_ = more;
  return absl::OkStatus();
}

}  // namespace protocol
}  // namespace penstock
