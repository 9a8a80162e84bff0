#include "transport/protocol/outbox.h"

#include <algorithm>
#include <utility>

namespace penstock {
namespace protocol {

size_t FramedBytes(size_t payload_bytes) {
  const size_t fragments = payload_bytes == 0
                               ? 1
                               : (payload_bytes + wire::kMaxFramePayload - 1) /
                                     wire::kMaxFramePayload;
  return payload_bytes + fragments * wire::kFrameHeaderBytes;
}

uint64_t Outbox::Add(wire::FrameHeader header, absl::string_view payload,
                     uint64_t ack, bool is_answer) {
  header.ack = ack;
  while (payload.size() > wire::kMaxFramePayload) {
    wire::FrameHeader fragment = header;
    fragment.flags |= wire::kMoreFragments;
    AddFragment(fragment, payload.substr(0, wire::kMaxFramePayload),
                payload.size(), is_answer);
    payload.remove_prefix(wire::kMaxFramePayload);
  }
  AddFragment(header, payload, payload.size(), is_answer);
  return next_sequence_ - 1;
}

void Outbox::AddFragment(const wire::FrameHeader& header,
                         absl::string_view payload, size_t to_come,
                         bool is_answer) {
  const size_t size = wire::kFrameHeaderBytes + payload.size();
  if (batches_.empty() || batches_.back().bytes.size() + size > max_batch_) {
    batches_.push_back(Batch{buffers_->Take()});
    // Reserves room for all fragments, so that the batch is not copied as it
    // grows.
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
  if (is_answer) batch.answer_bytes += size;
  wire::AppendFrame(numbered, payload, &batch.bytes);
}

}  // namespace protocol
}  // namespace penstock
