// What comes for streams: kept until they are attached, and in order.

#include <algorithm>
#include <utility>

#include "absl/strings/string_view.h"
#include "transport/session/session.h"
#include "transport/wire/announce.h"

namespace penstock {
namespace session {
namespace {

// What a stream takes that the application does not know yet, and what an item
// of its inbox takes beside its bytes.
constexpr uint64_t kStreamOverhead = 512;
constexpr uint64_t kItemOverhead = 128;

absl::string_view AsText(absl::Span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

absl::Status Session::OnHeaders(uint32_t stream,
                                absl::Span<const uint8_t> payload) {
  bool opened = false;
  if (!config_.is_client && stream > last_opened_) {
    last_opened_ = stream;
    if (open_streams_ >= max_streams_) {
      SendReset(stream, absl::UnavailableError(
                            "more streams than the server takes at once"));
      return absl::OkStatus();
    }
    ++open_streams_;
    Stream* const added =
        streams_.Add(stream, peer_window_, config_.stream_window);
    added->counted = true;
    Hold(added, kStreamOverhead);
    opened = true;
  }
  absl::Status status =
      AddMetadata(stream, protocol::Inbox::Kind::kHeaders, payload);
  if (opened) events_->OnStreamOpened(stream);
  return status;
}

void Session::AttachStream(uint32_t stream, StreamEvents* events) {
  if (closed()) {
    return events->OnReset(absl::UnavailableError("Penstock session closed"),
                           /*from_peer=*/false);
  }
  Stream* entry = streams_.Find(stream);
  if (entry == nullptr) {
    entry = streams_.Add(stream, peer_window_, config_.stream_window);
  } else {
    LetGo(entry, std::min(entry->held_bytes, kStreamOverhead));
  }
  entry->events = events;
  DeliverInbox(stream);
  Stream* found = FindStream(stream);
  if (found != nullptr && found->reset.has_value()) {
    const absl::Status status = *found->reset;
    DetachStream(stream);
    events->OnReset(status, /*from_peer=*/true);
  }
}

void Session::Hold(Stream* stream, uint64_t bytes) {
  if (config_.is_client) return;  // it has opened the streams itself
  stream->held_bytes += bytes;
  budget_.Charge(Budget::Kind::kUnread, bytes);
}

void Session::LetGo(Stream* stream, uint64_t bytes) {
  if (config_.is_client) return;
  stream->held_bytes -= bytes;
  budget_.Return(Budget::Kind::kUnread, bytes);
}

absl::Status Session::ChargeWindow(Stream* stream, uint64_t bytes,
                                   bool is_announced) {
  if (stream->unconsumed_cost >= config_.stream_window) {
    return absl::InvalidArgumentError("the peer overran a stream's window");
  }
  const uint64_t cost = protocol::MessageCost(bytes);
  stream->unconsumed_cost += cost;
  stream->unconsumed.push_back(
      Stream::Unconsumed{cost, last_announced_by_peer_, is_announced, 0});
  if (!is_announced) Hold(stream, cost);
  ++counters_.messages_received;
  counters_.bytes_received += bytes;
  return absl::OkStatus();
}

absl::Status Session::OnEager(const wire::FrameHeader& header,
                              absl::Span<const uint8_t> payload) {
  Stream* stream = FindStream(header.stream);
  if (stream == nullptr) return absl::OkStatus();
  absl::Status status = ChargeWindow(stream, payload.size(), false);
  if (!status.ok()) return status;
  const bool compressed = (header.flags & wire::kCompressed) != 0;
  if (TakesInput(*stream)) {
    stream->events->OnMessage(
        memory::Bytes{payload.data(), payload.size(), nullptr}, compressed);
    return absl::OkStatus();
  }
  protocol::Inbox::Item& item =
      stream->inbox.Add(protocol::Inbox::Kind::kMessage);
  item.compressed = compressed;
  if (payload.size() <= base::BufferPool::kMinBytes) {
    item.bytes = Copy(payload);
  } else {
    absl::StatusOr<memory::Bytes> message = memory::CopyBytes(payload);
    if (!message.ok()) return message.status();
    item.message = *std::move(message);
  }
  DeliverInbox(header.stream);
  return absl::OkStatus();
}

absl::Status Session::OnAnnounce(const wire::FrameHeader& header,
                                 absl::Span<const uint8_t> payload) {
  absl::StatusOr<wire::Announce> announce = wire::ParseAnnounce(payload);
  if (!announce.ok()) return announce.status();
  if (announce->id <= last_announced_by_peer_) {
    return absl::InvalidArgumentError("announcements are not in order");
  }
  last_announced_by_peer_ = announce->id;
  Stream* stream = FindStream(header.stream);
  if (stream == nullptr) {
    reader_.Discard(*announce);
    return absl::OkStatus();
  }
  absl::Status status = ChargeWindow(stream, announce->length, true);
  if (!status.ok()) return status;
  if (config_.max_receive_bytes >= 0 &&
      announce->length > static_cast<uint64_t>(config_.max_receive_bytes)) {
    stream->inbox.Add(protocol::Inbox::Kind::kTooLarge).length =
        announce->length;
    reader_.Discard(*announce);
    DeliverInbox(header.stream);
    return absl::OkStatus();
  }
  if (!budget_.takes_announcement(reader_.pending())) {
    return absl::ResourceExhaustedError(
        "the peer announced more messages at once than both sides agreed on");
  }
  stream->inbox.AddAnnounced(announce->id).compressed =
      (header.flags & wire::kCompressed) != 0;
  status = reader_.Begin(header.stream, *announce);
  stream = FindStream(header.stream);  // it may have failed at once
  if (stream != nullptr) StartIfWanted(*stream);
  return status;
}

absl::Status Session::AddMetadata(uint32_t stream, protocol::Inbox::Kind kind,
                                  absl::Span<const uint8_t> metadata) {
  Stream* found = FindStream(stream);
  if (found == nullptr) return absl::OkStatus();
  if (TakesInput(*found)) {
    DeliverMetadata(found->events, kind, AsText(metadata));
    return absl::OkStatus();
  }
  // An honest stream has headers and one or two ends.
  constexpr size_t kMaxMetadata = 8;
  if (found->inbox.metadata_items() >= kMaxMetadata) {
    return absl::InvalidArgumentError("the peer piles up a stream's metadata");
  }
  if (metadata.size() > config_.max_metadata_bytes) {
    metadata = metadata.first(config_.max_metadata_bytes + 1);
  }
  Hold(found, kItemOverhead + metadata.size());
  found->inbox.Add(kind).bytes = Copy(metadata);
  DeliverInbox(stream);
  return absl::OkStatus();
}

std::string Session::Copy(absl::Span<const uint8_t> bytes) {
  if (bytes.empty()) return std::string();
  std::string copy = buffers_.Take();
  copy.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return copy;
}

void Session::DeliverInbox(uint32_t stream) {
  // An event may detach the stream: look it up each time.
  Stream* found = FindStream(stream);
  if (found == nullptr || found->events == nullptr) return;
  protocol::Inbox::Item item;
  while (found != nullptr && found->events != nullptr &&
         found->inbox.Take(&item)) {
    if (protocol::Inbox::IsMetadata(item)) {
      LetGo(found, kItemOverhead + item.bytes.size());
    }
    DeliverItem(found->events, &item);
    buffers_.Give(std::move(item.bytes));
    found = FindStream(stream);
  }
}

void Session::DeliverItem(StreamEvents* events, protocol::Inbox::Item* item) {
  switch (item->kind) {
    case protocol::Inbox::Kind::kMessage:
      return events->OnMessage(protocol::Inbox::MessageOf(item),
                               item->compressed);
    case protocol::Inbox::Kind::kTooLarge:
      return events->OnMessageTooLarge(item->length);
    case protocol::Inbox::Kind::kHeaders:
    case protocol::Inbox::Kind::kHalfClose:
    case protocol::Inbox::Kind::kTrailers:
      return DeliverMetadata(events, item->kind, item->bytes);
  }
}

void Session::DeliverMetadata(StreamEvents* events, protocol::Inbox::Kind kind,
                              absl::string_view metadata) {
  if (kind == protocol::Inbox::Kind::kHeaders) {
    events->OnHeaders(metadata);
  } else if (kind == protocol::Inbox::Kind::kHalfClose) {
    events->OnHalfClose();
  } else {
    events->OnTrailers(metadata);
  }
}

}  // namespace session
}  // namespace penstock
