// From messages of the paths to events of the streams.

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

// Acknowledge at the latest after this much, a sixteenth of what a sender may
// keep waiting.
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

// What a stream hears of a message that cannot be had. Applications know lack
// of memory, and lost connections; what went wrong on a path is no code of
// theirs.
absl::Status LossOf(const absl::Status& cause) {
  if (absl::IsResourceExhausted(cause)) return cause;
  return absl::UnavailableError(
      absl::StrCat("a message was lost: ", cause.message()));
}

}  // namespace

void Session::OnMessage(bool over_lifeline, absl::Span<const uint8_t> message) {
  ++counters_.inputs;
  if (!over_lifeline) received_since_ack_ += message.size();
  while (!message.empty() && !closed()) {
    absl::StatusOr<wire::Frame> frame = wire::TakeFrame(&message);
    absl::Status status =
        frame.ok() ? sender_.OnAck(frame->header.ack) : frame.status();
    // Nothing of this has been taken. If it is the path that made nonsense of
    // it, the peer sends it again, over the lifeline.
    if (!status.ok() && !over_lifeline) return LoseFastPath(status);
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
  return OnPathFrame(frame);
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
      return OnHeaders(stream, payload);
    case FrameType::kMessage:
    case FrameType::kAnnounce: {
      absl::Status status = header.type == FrameType::kMessage
                                ? OnEager(header, payload)
                                : OnAnnounce(header, payload);
      if (!status.ok() || (header.flags & wire::kLast) == 0) return status;
      return AddMetadata(stream, protocol::Inbox::Kind::kHalfClose, {});
    }
    case FrameType::kHalfClose:
      return AddMetadata(stream, protocol::Inbox::Kind::kHalfClose, payload);
    case FrameType::kTrailers:
      return AddMetadata(stream, protocol::Inbox::Kind::kTrailers, payload);
    case FrameType::kReset:
      OnPeerReset(stream, ResetStatusOf(header.aux, payload));
      return absl::OkStatus();
    case FrameType::kCredit:
      OnCredit(stream, header.aux);
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
        OnRelease(*id);
      } else if (header.type == FrameType::kPing) {
        events_->OnPing();
        Add(FrameType::kPong, 0, 0, AsText(payload));
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

void Session::OnCredit(uint32_t stream, uint64_t credit) {
  Stream* const found = streams_.Find(stream);  // one that drains needs it too
  if (found == nullptr) return;
  unread_by_peer_ -= found->send_window.GiveBack(credit);
  SendOutgoing(stream);
}

void Session::OnPeerReset(uint32_t stream, const absl::Status& status) {
  if (FindStream(stream) == nullptr) {
    EndStream(stream);  // what drains is not wanted any more
    return;
  }
  ResetStream(stream, status, /*from_peer=*/true);
}

void Session::ResetStream(uint32_t stream, const absl::Status& status,
                          bool from_peer) {
  Stream* found = FindStream(stream);
  found->outgoing.clear();
  if (found->events == nullptr) {
    found->reset = status;
    Uncount(found);
    return;
  }
  StreamEvents* events = found->events;
  DetachStream(stream);
  events->OnReset(status, from_peer);
}

void Session::OnMessageRead(uint32_t stream, uint64_t id,
                            absl::StatusOr<memory::Bytes> message,
                            uint64_t budgeted) {
  Stream* found = FindStream(stream);
  if (found == nullptr) {
    reader_.Consumed(budgeted);
    return;
  }
  if (!message.ok()) {
    const absl::Status status = LossOf(message.status());
    SendReset(stream, status);
    return ResetStream(stream, status, /*from_peer=*/false);
  }
  const auto entry =
      std::lower_bound(found->unconsumed.begin(), found->unconsumed.end(), id,
                       [](const Stream::Unconsumed& other, uint64_t id) {
                         return other.id < id;
                       });
  entry->budgeted = budgeted;
  found->inbox.Complete(id, *std::move(message));
  DeliverInbox(stream);
}

void Session::OnRegionReleased(uint64_t id) {
  std::string payload;
  wire::AppendNumber<uint64_t>(id, &payload);
  Add(FrameType::kRelease, 0, 0, payload);
}

// After what waits has been sent: most of the time a frame has acknowledged.
void Session::AcknowledgeIfDue() {
  if (sender_.acknowledged() == order_.delivered()) {
    // What is held will be acknowledged once it is delivered.
    if (!order_.holding()) received_since_ack_ = 0;
  } else if (received_since_ack_ >= kAcknowledgeBytes && using_fast_ &&
             sender_.SendAck(order_.delivered())) {
    received_since_ack_ = 0;
  }
}

}  // namespace session
}  // namespace penstock
