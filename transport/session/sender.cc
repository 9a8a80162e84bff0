#include "transport/session/sender.h"

#include <algorithm>
#include <utility>

namespace penstock {
namespace session {
namespace {

// What may wait for an acknowledgement on a path that can be lost. The
// receiver acknowledges in steps of a sixteenth of it, so a sender that waits
// for the peer's acknowledgement does not wait in vain.
constexpr size_t kMaxLoggedBytes = 1024 * 1024;

absl::Span<const uint8_t> AsSpan(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

}  // namespace

Sender::Sender(fabric::Endpoint* lifeline, base::BufferPool* buffers)
    : lifeline_(lifeline),
      buffers_(buffers),
      outbox_(lifeline->capabilities().max_message_bytes, buffers),
      log_(buffers) {}

void Sender::Add(const wire::FrameHeader& header, absl::string_view payload,
                 uint64_t ack) {
  last_added_ = outbox_.Add(header, payload, ack);
}

void Sender::AddControl(wire::FrameHeader header, absl::string_view payload,
                        uint64_t ack) {
  header.length = static_cast<uint32_t>(payload.size());
  header.ack = ack;
  std::string message;
  wire::AppendFrame(header, payload, &message);
  control_.push_back(std::move(message));
}

bool Sender::SendAck(uint64_t ack) {
  wire::FrameHeader header;
  header.type = wire::FrameType::kAck;
  header.ack = ack;
  std::string message;
  wire::AppendFrame(header, absl::string_view(), &message);
  if (!active()->Send(AsSpan(message))) return false;
  acknowledged_ = ack;
  return true;
}

void Sender::UseFastPath(fabric::Endpoint* path) { fast_path_ = path; }

void Sender::LoseFastPath() {
  fast_path_ = nullptr;
  while (!log_.empty()) resend_.push_back(log_.TakeOldest());
}

absl::Status Sender::OnAck(uint64_t ack) {
  if (ack > last_added_) {
    return absl::InvalidArgumentError(
        "the peer acknowledges frames that were never sent");
  }
  log_.Acknowledge(ack);
  return absl::OkStatus();
}

bool Sender::SendOverLifeline(base::Fifo<std::string>* messages) {
  while (!messages->empty()) {
    if (!lifeline_->Send(AsSpan(messages->front()))) return false;
    messages->pop_front();
  }
  return true;
}

bool Sender::SendFront() {
  const protocol::Batch& batch = outbox_.front();
  // A batch that was packed for another path may be too long for this one.
  if (fast_path_ == nullptr ||
      batch.bytes.size() > fast_path_->capabilities().max_message_bytes) {
    if (!lifeline_->SendOwned(outbox_.mutable_front_bytes())) return false;
    acknowledged_ = std::max(acknowledged_, batch.ack);
    buffers_->Give(outbox_.Pop().bytes);
    return true;
  }
  if (log_.bytes() >= kMaxLoggedBytes) return false;
  if (!fast_path_->Send(AsSpan(batch.bytes))) return false;
  acknowledged_ = std::max(acknowledged_, batch.ack);
  const uint64_t last = batch.last_sequence;
  log_.Add(last, std::move(outbox_.Pop().bytes));
  return true;
}

void Sender::Flush() {
  if (SendOverLifeline(&control_) && SendOverLifeline(&resend_)) {
    while (!outbox_.empty() && SendFront()) {
    }
  }
  // Not before the announcements have gone: the peer would drop the bytes.
  if (to_push_.empty() || !idle()) return;
  for (const fabric::RemoteRegion& region : to_push_) lifeline_->Push(region);
  to_push_.clear();
}

}  // namespace session
}  // namespace penstock
