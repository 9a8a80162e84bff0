#include "transport/session/sender.h"

#include <algorithm>
#include <utility>

namespace penstock {
namespace session {
namespace {

// Limits the unacknowledged bytes on a path that can be lost. The receiver
// acknowledges after each sixteenth of this limit, so a sender at the limit
// always gets an acknowledgement.
constexpr size_t kMaxLoggedBytes = 1024 * 1024;

absl::Span<const uint8_t> AsSpan(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// Returns true for frames that the peer causes without the application's help.
bool IsAnswer(wire::FrameType type) {
  return type == wire::FrameType::kRelease ||
         type == wire::FrameType::kCredit || type == wire::FrameType::kReset ||
         type == wire::FrameType::kPong;
}

}  // namespace

Sender::Sender(fabric::Endpoint* lifeline, base::BufferPool* buffers,
               Budget* budget)
    : lifeline_(lifeline),
      buffers_(buffers),
      budget_(budget),
      outbox_(lifeline->capabilities().max_packet_bytes, buffers),
      log_(buffers) {}

void Sender::Add(const wire::FrameHeader& header, absl::string_view payload,
                 uint64_t ack) {
  const bool is_answer = IsAnswer(header.type);
  const size_t bytes = protocol::FramedBytes(payload.size());
  budget_->Charge(Budget::Kind::kOutbox, bytes);
  if (is_answer) budget_->Charge(Budget::Kind::kAnswers, bytes);
  last_added_ = outbox_.Add(header, payload, ack, is_answer);
}

void Sender::AddControl(wire::FrameHeader header, absl::string_view payload,
                        uint64_t ack) {
  header.length = static_cast<uint32_t>(payload.size());
  header.ack = ack;
  std::string packet;
  wire::AppendFrame(header, payload, &packet);
  budget_->Charge(Budget::Kind::kAnswers, packet.size());
  control_.push_back(std::move(packet));
}

bool Sender::SendAck(uint64_t ack) {
  wire::FrameHeader header;
  header.type = wire::FrameType::kAck;
  header.ack = ack;
  std::string packet;
  wire::AppendFrame(header, absl::string_view(), &packet);
  if (!active()->Send(AsSpan(packet))) return false;
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

bool Sender::SendControl() {
  while (!control_.empty()) {
    if (!lifeline_->Send(AsSpan(control_.front()))) return false;
    budget_->Return(Budget::Kind::kAnswers, control_.pop_front().size());
  }
  return true;
}

bool Sender::SendAgain() {
  while (!resend_.empty()) {
    if (!lifeline_->Send(AsSpan(resend_.front()))) return false;
    resend_.pop_front();
  }
  return true;
}

bool Sender::SendFront() {
  const protocol::Batch& batch = outbox_.front();
  // Uses the lifeline also for a batch that is too long for the fast path.
  if (fast_path_ == nullptr ||
      batch.bytes.size() > fast_path_->capabilities().max_packet_bytes) {
    return SendFrontOverLifeline();
  }
  if (log_.bytes() >= kMaxLoggedBytes) return false;
  if (!fast_path_->Send(AsSpan(batch.bytes))) return false;
  OnLeft(batch.ack, batch.bytes.size(), batch.answer_bytes);
  const uint64_t last = batch.last_sequence;
  log_.Add(last, std::move(outbox_.Pop().bytes));
  return true;
}

bool Sender::SendFrontOverLifeline() {
  const protocol::Batch& batch = outbox_.front();
  const size_t bytes = batch.bytes.size();
  if (!lifeline_->SendOwned(outbox_.mutable_front_bytes())) return false;
  OnLeft(batch.ack, bytes, batch.answer_bytes);
  buffers_->Give(outbox_.Pop().bytes);
  return true;
}

void Sender::OnLeft(uint64_t ack, size_t bytes, size_t answer_bytes) {
  acknowledged_ = std::max(acknowledged_, ack);
  budget_->Return(Budget::Kind::kOutbox, bytes);
  budget_->Return(Budget::Kind::kAnswers, answer_bytes);
}

void Sender::Flush() {
  if (SendControl() && SendAgain()) {
    while (!outbox_.empty() && SendFront()) {
    }
  }
  // Pushes only after the announcements were sent. Otherwise the peer would
  // drop the bytes.
  if (to_push_.empty() || !idle()) return;
  // Makes the peer poll the fast path first, because the announcements are
  // there.
  if (fast_path_ != nullptr) lifeline_->RingDoorbell();
  for (const fabric::RemoteRegion& region : to_push_) lifeline_->Push(region);
  to_push_.clear();
}

}  // namespace session
}  // namespace penstock
