#include "transport/protocol/receive_order.h"

#include <utility>

namespace penstock {
namespace protocol {

constexpr size_t ReceiveOrder::kMaxHeldBytes;

absl::Status ReceiveOrder::Accept(const wire::Frame& frame, Verdict* verdict) {
  const uint64_t sequence = frame.header.sequence;
  if (sequence <= delivered_ || held_.count(sequence) > 0) {
    *verdict = Verdict::kDuplicate;
    return absl::OkStatus();
  }
  if (sequence == delivered_ + 1) {
    delivered_ = sequence;
    *verdict = Verdict::kDeliver;
    return absl::OkStatus();
  }
  const size_t size = frame.payload.size() + sizeof(HeldFrame);
  if (held_bytes_ + size > kMaxHeldBytes) {
    return absl::ResourceExhaustedError(
        "the peer sent too much ahead of a missing frame");
  }
  held_bytes_ += size;
  held_[sequence] =
      HeldFrame{frame.header,
                std::string(reinterpret_cast<const char*>(frame.payload.data()),
                            frame.payload.size())};
  *verdict = Verdict::kHeld;
  return absl::OkStatus();
}

bool ReceiveOrder::TakeNext(HeldFrame* frame) {
  auto it = held_.begin();
  if (it == held_.end() || it->first != delivered_ + 1) return false;
  delivered_ = it->first;
  held_bytes_ -= it->second.payload.size() + sizeof(HeldFrame);
  *frame = std::move(it->second);
  held_.erase(it);
  return true;
}

}  // namespace protocol
}  // namespace penstock
