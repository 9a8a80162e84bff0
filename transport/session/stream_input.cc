#include "transport/session/stream_input.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "transport/protocol/stream_window.h"
#include "transport/wire/announce.h"
#include "transport/wire/reader.h"

namespace penstock {
namespace session {
namespace {

// The estimated memory of an unattached stream, and of an inbox item in
// addition to its bytes, in bytes.
constexpr uint64_t kStreamOverhead = 512;
constexpr uint64_t kItemOverhead = 128;

absl::string_view AsText(absl::Span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Returns the bytes that a message of `cost` occupies until it is consumed.
// Excludes bytes that count in the read budget.
uint64_t HeldFor(Stream::Way way, uint64_t cost) {
  switch (way) {
    case Stream::Way::kEager:
      return cost;
    case Stream::Way::kAnnounced:
      return 0;
    case Stream::Way::kRefused:
      return kItemOverhead;
  }
  return 0;
}

// Returns the status that a stream reports for a lost message. Keeps
// RESOURCE_EXHAUSTED, and replaces codes of a path, which applications do not
// know, by UNAVAILABLE.
absl::Status LossOf(const absl::Status& cause) {
  if (absl::IsResourceExhausted(cause)) return cause;
  return absl::UnavailableError(
      absl::StrCat("a message was lost: ", cause.message()));
}

void DeliverMetadata(StreamEvents* events, protocol::Inbox::Kind kind,
                     absl::string_view metadata) {
  if (kind == protocol::Inbox::Kind::kHeaders) {
    events->OnHeaders(metadata);
  } else if (kind == protocol::Inbox::Kind::kHalfClose) {
    events->OnHalfClose();
  } else {
    events->OnTrailers(metadata);
  }
}

void DeliverItem(StreamEvents* events, protocol::Inbox::Item* item) {
  switch (item->kind) {
    case protocol::Inbox::Kind::kMessage:
      return events->OnMessage(protocol::Inbox::MessageOf(*item),
                               item->compressed);
    case protocol::Inbox::Kind::kTooLarge:
      return events->OnMessageTooLarge(item->length);
    case protocol::Inbox::Kind::kHeaders:
    case protocol::Inbox::Kind::kHalfClose:
    case protocol::Inbox::Kind::kTrailers:
      return DeliverMetadata(events, item->kind, item->bytes);
  }
}

}  // namespace

StreamInput::StreamInput(const Parts& parts, StreamTable* streams, Owner* owner)
    : config_(*parts.config),
      streams_(streams),
      budget_(parts.budget),
      writer_(parts.writer),
      counters_(parts.counters),
      recorder_(parts.recorder),
      buffers_(parts.buffers),
      owner_(owner),
      reader_(parts.lifeline, config_.read_budget, config_.load_in_place, this,
              config_.tuning) {}

void StreamInput::OnOpened(Stream* stream) { Hold(stream, kStreamOverhead); }

void StreamInput::OnAttached(uint32_t id) {
  Stream* const stream = streams_->Find(id);
  LetGo(stream, std::min(stream->held_bytes, kStreamOverhead));
  DeliverInbox(id);
}

void StreamInput::OnDetached(uint32_t id, Stream* stream) {
  base::Fifo<Stream::Unconsumed> unconsumed = std::move(stream->unconsumed);
  stream->inbox = protocol::Inbox();
  stream->destinations = nullptr;
  LetGo(stream, stream->held_bytes);
  reader_.Abandon(id);
  for (const Stream::Unconsumed& entry : unconsumed) {
    reader_.Consumed(entry.budgeted);
  }
}

void StreamInput::Hold(Stream* stream, uint64_t bytes) {
  if (config_.is_client) return;  // only servers limit this
  stream->held_bytes += bytes;
  budget_->Charge(Budget::Kind::kUnread, bytes);
}

void StreamInput::LetGo(Stream* stream, uint64_t bytes) {
  if (config_.is_client) return;
  stream->held_bytes -= bytes;
  budget_->Return(Budget::Kind::kUnread, bytes);
}

absl::Status StreamInput::ChargeWindow(Stream* stream, uint64_t bytes,
                                       Stream::Way way) {
  if (stream->unconsumed_cost >= config_.stream_window) {
    return absl::InvalidArgumentError("the peer overran a stream's window");
  }
  const uint64_t cost = protocol::MessageCost(bytes);
  stream->unconsumed_cost += cost;
  const bool is_eager = way == Stream::Way::kEager;
  const uint64_t held = HeldFor(way, cost);
  stream->unconsumed.push_back(Stream::Unconsumed{
      cost, held, last_announced_, way, 0, is_eager ? 0 : recorder_->Begin()});
  if (held > 0) Hold(stream, held);
  if (way == Stream::Way::kRefused) return absl::OkStatus();
  counters_->OnReceived(
      is_eager ? metrics::Kind::kEager : metrics::Kind::kAnnounced, bytes);
  return absl::OkStatus();
}

absl::Status StreamInput::OnEager(const wire::FrameHeader& header,
                                  absl::Span<const uint8_t> payload) {
  Stream* stream = streams_->Find(header.stream);
  if (stream == nullptr) return absl::OkStatus();
  absl::Status status =
      ChargeWindow(stream, payload.size(), Stream::Way::kEager);
  if (!status.ok()) return status;
  const bool compressed = (header.flags & wire::kCompressed) != 0;
  if (TakesInput(*stream)) {
    stream->events->OnMessage(
        memory::Payload({payload.data(), payload.size(), nullptr}), compressed);
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
    item.message = std::make_unique<const memory::Payload>(*std::move(message));
  }
  DeliverInbox(header.stream);
  return absl::OkStatus();
}

absl::Status StreamInput::OnAnnounce(const wire::FrameHeader& header,
                                     absl::Span<const uint8_t> payload) {
  absl::StatusOr<wire::Announce> announce =
      wire::ParseAnnounce(payload, config_.version);
  if (!announce.ok()) return announce.status();
  if (announce->id <= last_announced_) {
    return absl::InvalidArgumentError("announcements are not in order");
  }
  last_announced_ = announce->id;
  Stream* stream = streams_->Find(header.stream);
  if (stream == nullptr) {
    reader_.Discard(*announce);
    return absl::OkStatus();
  }
  const bool is_refused = IsTooLarge(announce->length);
  absl::Status status = ChargeWindow(
      stream, announce->length,
      is_refused ? Stream::Way::kRefused : Stream::Way::kAnnounced);
  if (!status.ok()) return status;
  if (is_refused) {
    stream->inbox.Add(protocol::Inbox::Kind::kTooLarge).length =
        announce->length;
    reader_.Discard(*announce);
    DeliverInbox(header.stream);
    return absl::OkStatus();
  }
  if (!budget_->takes_announcement(reader_.pending_parts())) {
    return absl::ResourceExhaustedError(
        "the peer announced more concurrent messages than both sides agreed "
        "on");
  }
  stream->inbox.AddAnnounced(announce->id).compressed =
      (header.flags & wire::kCompressed) != 0;
  status =
      reader_.Begin(header.stream, *announce, std::move(stream->destinations));
  stream = streams_->Find(header.stream);  // the read may have failed
  if (stream != nullptr) StartIfWanted(*stream);
  return status;
}

absl::Status StreamInput::OnMetadata(uint32_t id, protocol::Inbox::Kind kind,
                                     absl::Span<const uint8_t> metadata) {
  Stream* stream = streams_->Find(id);
  if (stream == nullptr) return absl::OkStatus();
  if (kind != protocol::Inbox::Kind::kHeaders) stream->input_ended = true;
  if (kind == protocol::Inbox::Kind::kTrailers) OnStatus(stream);
  if (TakesInput(*stream)) {
    DeliverMetadata(stream->events, kind, AsText(metadata));
    return absl::OkStatus();
  }
  // Limits the metadata items of a stream. An honest stream has headers, and
  // one or two items that end it.
  constexpr size_t kMaxMetadata = 8;
  if (stream->inbox.metadata_items() >= kMaxMetadata) {
    return absl::InvalidArgumentError("the peer piles up a stream's metadata");
  }
  if (metadata.size() > config_.max_metadata_bytes) {
    metadata = metadata.first(config_.max_metadata_bytes + 1);
  }
  Hold(stream, kItemOverhead + metadata.size());
  stream->inbox.Add(kind).bytes = Copy(metadata);
  return absl::OkStatus();
}

void StreamInput::OnStatus(Stream* stream) {
  if (std::exchange(stream->has_status, true) || !stream->is_sample) return;
  counters_->client_streams[static_cast<int>(counters_->receiving)].Record(
      config_.tuning.now_ns() - stream->begun_ns);
}

std::string StreamInput::Copy(absl::Span<const uint8_t> bytes) {
  if (bytes.empty()) return std::string();
  std::string copy = buffers_->Take();
  copy.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return copy;
}

void StreamInput::DeliverInbox(uint32_t id) {
  // Looks up the stream each time, because an event may detach it.
  Stream* stream = streams_->Find(id);
  if (stream == nullptr || stream->events == nullptr) return;
  protocol::Inbox::Item item;
  while (stream != nullptr && stream->events != nullptr &&
         stream->inbox.Take(&item)) {
    if (protocol::Inbox::IsMetadata(item)) {
      LetGo(stream, kItemOverhead + item.bytes.size());
    }
    DeliverItem(stream->events, &item);
    buffers_->Give(std::move(item.bytes));
    stream = streams_->Find(id);
  }
}

void StreamInput::OnMessageRead(uint32_t id, uint64_t announcement,
                                absl::StatusOr<memory::Payload> message,
                                uint64_t budgeted) {
  Stream* stream = streams_->Find(id);
  if (stream == nullptr) {
    reader_.Consumed(budgeted);
    return;
  }
  if (!message.ok()) {
    return owner_->FailStream(id, LossOf(message.status()));
  }
  const auto entry = std::lower_bound(
      stream->unconsumed.begin(), stream->unconsumed.end(), announcement,
      [](const Stream::Unconsumed& other, uint64_t id) {
        return other.id < id;
      });
  entry->budgeted = budgeted;
  recorder_->OnRead(id, announcement, message->size(), entry->begun_ns,
                    counters_->receiving);
  stream->inbox.Complete(announcement, *std::move(message));
  DeliverInbox(id);
}

void StreamInput::OnRegionReleased(uint32_t id, uint64_t announcement,
                                   bool may_wait) {
  std::string payload;
  wire::AppendNumber<uint64_t>(announcement, &payload);
  wire::FrameHeader release;
  release.type = wire::FrameType::kRelease;
  Answer(id, release, payload, may_wait);
}

void StreamInput::Answer(uint32_t id, const wire::FrameHeader& frame,
                         absl::string_view payload, bool may_wait) {
  if (!may_wait || !config_.defers_answers) {
    return writer_->Add(frame.type, frame.stream, frame.aux, payload);
  }
  if (!writer_->has_deferred()) answered_.clear();  // they have left
  writer_->Defer(frame.type, frame.stream, frame.aux, payload);
  answered_.push_back(id);
}

void StreamInput::SendAwaited(bool all) {
  bool is_awaited = all;
  for (const uint32_t id : answered_) {
    const Stream* const stream = streams_->FindAny(id);
    if (stream != nullptr && !stream->input_ended) is_awaited = true;
  }
  answered_.clear();
  if (is_awaited) writer_->SendDeferred();
}

void StreamInput::PostDestinations(
    uint32_t id, std::shared_ptr<memory::Destinations> destinations) {
  Stream* const stream = streams_->Find(id);
  if (stream != nullptr) stream->destinations = std::move(destinations);
}

void StreamInput::WantMessage(uint32_t id) {
  Stream* stream = streams_->Find(id);
  if (stream == nullptr) return;
  stream->wants_message = true;
  StartIfWanted(*stream);
}

// Starts the read for which the application waits. The budget does not delay
// this read, because the application might wait forever.
void StreamInput::StartIfWanted(const Stream& stream) {
  if (!stream.wants_message || stream.unconsumed.empty()) return;
  const Stream::Unconsumed& next = stream.unconsumed.front();
  if (next.way == Stream::Way::kAnnounced) reader_.Want(next.id);
}

void StreamInput::Consumed(uint32_t id) {
  Stream* stream = streams_->Find(id);
  if (stream == nullptr || stream->unconsumed.empty()) return;
  stream->wants_message = false;
  const Stream::Unconsumed oldest = stream->unconsumed.pop_front();
  if (oldest.held > 0) LetGo(stream, oldest.held);
  // Stops: nothing follows a refused message, because the application ends the
  // stream.
  if (oldest.way == Stream::Way::kRefused) return;
  stream->unconsumed_cost -= oldest.cost;
  const uint64_t credit = stream->receive_window.Consume(oldest.cost);
  reader_.Consumed(oldest.budgeted);
  SendCredit(id, credit);
}

void StreamInput::SendCredit(uint32_t id, uint64_t credit) {
  // Sends several credit frames, because a message may be longer than one
  // credit frame can express. Even the longest message needs only 8 KiB of
  // frames.
  static_assert(wire::kMaxMessageBytes / UINT32_MAX <= 256, "");
  while (credit > 0) {
    const uint32_t part =
        static_cast<uint32_t>(std::min<uint64_t>(credit, UINT32_MAX));
    wire::FrameHeader frame;
    frame.type = wire::FrameType::kCredit;
    frame.stream = id;
    frame.aux = part;
    Answer(id, frame, absl::string_view(), /*may_wait=*/true);
    credit -= part;
  }
}

}  // namespace session
}  // namespace penstock
