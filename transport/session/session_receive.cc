// Turns packets of the paths into events of the streams.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "transport/session/refusal.h"
#include "transport/session/session.h"
#include "transport/wire/reader.h"

namespace penstock {
namespace session {
namespace {

using wire::FrameType;

// Limits the unacknowledged bytes: a sixteenth of what a sender may keep
// waiting.
constexpr uint64_t kAcknowledgeBytes = 64 * 1024;

absl::string_view AsText(absl::Span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string ToString(absl::Span<const uint8_t> bytes) {
  return std::string(AsText(bytes));
}

absl::StatusOr<uint64_t> ParseId(absl::Span<const uint8_t> payload) {
  wire::Reader reader(payload);
  const uint64_t id = reader.Number<uint64_t>();
  if (!reader.Finished()) return absl::InvalidArgumentError("malformed id");
  return id;
}

absl::Status StatusOf(uint32_t code, absl::Span<const uint8_t> message) {
  if (code == 0 ||
      code > static_cast<uint32_t>(absl::StatusCode::kUnauthenticated)) {
    code = static_cast<uint32_t>(absl::StatusCode::kUnknown);
  }
  return absl::Status(static_cast<absl::StatusCode>(code), ToString(message));
}

absl::Status ResetStatusOf(uint32_t aux, absl::Span<const uint8_t> message) {
  const absl::Status status = StatusOf(aux & ~wire::kRefused, message);
  return (aux & wire::kRefused) != 0 ? Refusal(status) : status;
}

}  // namespace

void Session::OnPacket(bool over_lifeline, absl::Span<const uint8_t> packet) {
  ++counters_.inputs;
  counters_.receiving = over_lifeline ? metrics::Fabric::kTcp : path_.fabric();
  if (!over_lifeline) received_since_ack_ += packet.size();
  while (!packet.empty() && !closed()) {
    absl::StatusOr<wire::Frame> frame = wire::TakeFrame(&packet);
    absl::Status status =
        frame.ok() ? sender_.OnAck(frame->header.ack) : frame.status();
    // Nothing of this frame has been taken. If the path corrupted it, the peer
    // sends the frame again over the lifeline.
    if (!status.ok() && !over_lifeline) return path_.Lose(status);
    if (status.ok()) status = OnFrame(over_lifeline, *frame);
    if (status.ok()) status = budget_.Check();
    if (!status.ok()) return Close(status);
  }
}

absl::Status Session::OnFrame(bool over_lifeline, const wire::Frame& frame) {
  if (frame.header.type == FrameType::kAck) return absl::OkStatus();
  if (wire::IsSequenced(frame.header.type)) {
    if (state_ == State::kGreeting) {
      return absl::InvalidArgumentError("the peer did not say hello first");
    }
    return OnSequenced(frame);
  }
  if (!over_lifeline) {
    return absl::InvalidArgumentError("a control frame on a fast path");
  }
  return OnControl(frame);
}

absl::Status Session::OnControl(const wire::Frame& frame) {
  if (frame.header.type == FrameType::kHello) return OnHello(frame.payload);
  if (state_ == State::kGreeting) {
    return absl::InvalidArgumentError("the peer did not say hello first");
  }
  return path_.OnFrame(frame);
}

absl::Status Session::OnSequenced(const wire::Frame& frame) {
  protocol::ReceiveOrder::Verdict verdict;
  absl::Status status = order_.Accept(frame, &verdict);
  if (!status.ok() || verdict != protocol::ReceiveOrder::Verdict::kDeliver) {
    return status;
  }
  status = Deliver(frame.header, frame.payload);
  protocol::ReceiveOrder::HeldFrame held;
  while (status.ok() && !closed() && order_.TakeNext(&held)) {
    status = Deliver(held.header,
                     {reinterpret_cast<const uint8_t*>(held.payload.data()),
                      held.payload.size()});
  }
  return status;
}

absl::Status Session::Deliver(const wire::FrameHeader& header,
                              absl::Span<const uint8_t> payload) {
  bool whole = false;
  absl::Status status = reassembler_.Accept(header, payload, &whole);
  if (!status.ok() || !whole) return status;
  if (!reassembler_.was_fragmented()) return Dispatch(header, payload);
  return Dispatch(header, reassembler_.joined());
}

absl::Status Session::Dispatch(const wire::FrameHeader& header,
                               absl::Span<const uint8_t> payload) {
  const uint32_t stream = header.stream;
  switch (header.type) {
    case FrameType::kHeaders:
      return streams_.OnHeaders(stream, payload);
    case FrameType::kMessage:
    case FrameType::kAnnounce: {
      absl::Status status = header.type == FrameType::kMessage
                                ? streams_.input().OnEager(header, payload)
                                : streams_.input().OnAnnounce(header, payload);
      if (!status.ok() || (header.flags & wire::kLast) == 0) return status;
      return streams_.input().OnMetadata(stream,
                                         protocol::Inbox::Kind::kHalfClose, {});
    }
    case FrameType::kHalfClose:
      return streams_.input().OnMetadata(
          stream, protocol::Inbox::Kind::kHalfClose, payload);
    case FrameType::kTrailers:
      return streams_.input().OnMetadata(
          stream, protocol::Inbox::Kind::kTrailers, payload);
    case FrameType::kReset:
      streams_.OnPeerReset(stream, ResetStatusOf(header.aux, payload));
      return absl::OkStatus();
    case FrameType::kCredit:
      output().OnCredit(stream, header.aux);
      return absl::OkStatus();
    case FrameType::kEntry:
      return events_->OnEntry(header.aux, AsText(payload));
    case FrameType::kGoaway:
      events_->OnGoaway(stream, StatusOf(header.aux, payload));
      return absl::OkStatus();
    case FrameType::kRelease:
    case FrameType::kPing:
    case FrameType::kPong: {
      absl::StatusOr<uint64_t> id = ParseId(payload);
      if (!id.ok()) return id.status();
      if (header.type == FrameType::kRelease) {
        output().OnRelease(*id);
      } else if (header.type == FrameType::kPing) {
        OnPing(*id);
      } else {
        events_->OnPong(*id);
      }
      return absl::OkStatus();
    }
    case FrameType::kHello:
    case FrameType::kPathReady:
    case FrameType::kPathLost:
    case FrameType::kPathWanted:
    case FrameType::kPathOffered:
    case FrameType::kAck:
      break;  // unsequenced: never here
  }
  return absl::InternalError("unsequenced frame in sequence");
}

// Call after waiting frames were sent: most of the time, one of them has
// acknowledged.
void Session::AcknowledgeIfDue() {
  if (sender_.acknowledged() == order_.delivered()) {
    // Held frames are acknowledged once they are delivered.
    if (!order_.holding()) received_since_ack_ = 0;
  } else if (received_since_ack_ >= kAcknowledgeBytes && path_.in_use() &&
             sender_.SendAck(order_.delivered())) {
    received_since_ack_ = 0;
  }
}

}  // namespace session
}  // namespace penstock
