#include "transport/session/ordered_input.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "transport/session/refusal.h"
#include "transport/wire/reader.h"

namespace penstock {
namespace session {
namespace {

using wire::FrameType;

// The number of unacknowledged bytes after which this side acknowledges: a
// sixteenth of the bytes that a sender may have unacknowledged.
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
  // Adds a text, because gRPC shows an error without one as its source lines.
  return absl::Status(
      static_cast<absl::StatusCode>(code),
      message.empty() ? "the peer gave no reason" : ToString(message));
}

absl::Status ResetStatusOf(uint32_t aux, absl::Span<const uint8_t> message) {
  const absl::Status status = StatusOf(aux & ~wire::kRefused, message);
  return (aux & wire::kRefused) != 0 ? Refusal(status) : status;
}

}  // namespace

absl::Status OrderedInput::OnFrame(const wire::Frame& frame) {
  protocol::ReceiveOrder::Verdict verdict;
  absl::Status status = order_.Accept(frame, &verdict);
  if (!status.ok() || verdict != protocol::ReceiveOrder::Verdict::kDeliver) {
    return status;
  }
  status = Deliver(frame.header, frame.payload);
  protocol::ReceiveOrder::HeldFrame held;
  while (status.ok() && !stopped_ && order_.TakeNext(&held)) {
    status = Deliver(held.header,
                     {reinterpret_cast<const uint8_t*>(held.payload.data()),
                      held.payload.size()});
  }
  return status;
}

absl::Status OrderedInput::Deliver(const wire::FrameHeader& header,
                                   absl::Span<const uint8_t> payload) {
  bool whole = false;
  absl::Status status = reassembler_.Accept(header, payload, &whole);
  if (!status.ok() || !whole) return status;
  if (!reassembler_.was_fragmented()) return Dispatch(header, payload);
  return Dispatch(header, reassembler_.joined());
}

absl::Status OrderedInput::Dispatch(const wire::FrameHeader& header,
                                    absl::Span<const uint8_t> payload) {
  const uint32_t stream = header.stream;
  switch (header.type) {
    case FrameType::kHeaders:
      return streams_->OnHeaders(stream, payload);
    case FrameType::kMessage:
    case FrameType::kAnnounce: {
      absl::Status status = header.type == FrameType::kMessage
                                ? streams_->input().OnEager(header, payload)
                                : streams_->input().OnAnnounce(header, payload);
      if (!status.ok() || (header.flags & wire::kLast) == 0) return status;
      return streams_->input().OnMetadata(
          stream, protocol::Inbox::Kind::kHalfClose, {});
    }
    case FrameType::kHalfClose:
      return streams_->input().OnMetadata(
          stream, protocol::Inbox::Kind::kHalfClose, payload);
    case FrameType::kTrailers:
      return streams_->input().OnMetadata(
          stream, protocol::Inbox::Kind::kTrailers, payload);
    case FrameType::kReset:
      streams_->OnPeerReset(stream, ResetStatusOf(header.aux, payload));
      return absl::OkStatus();
    case FrameType::kCredit:
      streams_->output().OnCredit(stream, header.aux);
      return absl::OkStatus();
    case FrameType::kEntry:
      return events_->OnEntry(header.aux, AsText(payload));
    case FrameType::kGoaway:
      events_->OnGoaway(stream, StatusOf(header.aux, payload));
      return absl::OkStatus();
    case FrameType::kRelease:
    case FrameType::kPing:
    case FrameType::kPong:
      return OnNumber(header, payload);
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

absl::Status OrderedInput::OnNumber(const wire::FrameHeader& header,
                                    absl::Span<const uint8_t> payload) {
  absl::StatusOr<uint64_t> id = ParseId(payload);
  if (!id.ok()) return id.status();
  if (header.type == FrameType::kRelease) {
    streams_->output().OnRelease(*id);
  } else if (header.type == FrameType::kPing) {
    events_->OnPing();
    pongs_->OnPing(*id);
  } else {
    events_->OnPong(*id);
  }
  return absl::OkStatus();
}

void OrderedInput::AcknowledgeIfDue(Sender* sender, bool uses_fast_path) {
  if (sender->acknowledged() == order_.delivered()) {
    // Starts to count from zero again, unless frames are held. Held frames are
    // acknowledged once they are delivered.
    if (!order_.holding()) received_since_ack_ = 0;
  } else if (received_since_ack_ >= kAcknowledgeBytes && uses_fast_path &&
             sender->SendAck(order_.delivered())) {
    received_since_ack_ = 0;
  }
}

}  // namespace session
}  // namespace penstock
