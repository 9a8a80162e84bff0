#include "transport/protocol/outbox.h"

#include <algorithm>
#include <utility>

namespace penstock {
namespace protocol {

uint64_t Outbox::Add(wire::FrameHeader header, absl::string_view payload,
                     uint64_t ack) {
  header.ack = ack;
  while (payload.size() > wire::kMaxFramePayload) {
    wire::FrameHeader fragment = header;
    fragment.flags |= wire::kMoreFragments;
    AddFragment(fragment, payload.substr(0, wire::kMaxFramePayload),
                payload.size());
    payload.remove_prefix(wire::kMaxFramePayload);
  }
  AddFragment(header, payload, payload.size());
  return next_sequence_ - 1;
}

void Outbox::AddFragment(const wire::FrameHeader& header,
                         absl::string_view payload, size_t to_come) {
  const size_t size = wire::kFrameHeaderBytes + payload.size();
  if (batches_.empty() || batches_.back().bytes.size() + size > max_batch_) {
    batches_.push_back(Batch{buffers_->Take()});
    // Room for all that is known to come, so that it is not copied as it grows.
    const size_t fragments = to_come / wire::kMaxFramePayload + 1;
    batches_.back().bytes.reserve(
        std::min(max_batch_, to_come + fragments * wire::kFrameHeaderBytes));
  }
  Batch& batch = batches_.back();
  wire::FrameHeader numbered = header;
  numbered.length = static_cast<uint32_t>(payload.size());
  numbered.sequence = next_sequence_++;
  batch.last_sequence = numbered.sequence;
  batch.ack = numbered.ack;
  wire::AppendFrame(numbered, payload, &batch.bytes);
}

}  // namespace protocol
}  // namespace penstock
