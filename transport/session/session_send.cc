// From calls about streams to frames.

#include <algorithm>
#include <utility>

#include "transport/session/refusal.h"
#include "transport/session/session.h"
#include "transport/wire/announce.h"
#include "transport/wire/reader.h"

namespace penstock {
namespace session {

namespace {

using wire::FrameType;

absl::string_view AsText(absl::Span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

void Session::Add(FrameType type, uint32_t stream, uint32_t aux,
                  absl::string_view payload, uint8_t flags) {
  if (closed()) return;
  if (type <= FrameType::kTrailers && stream != 0) {
    ++counters_.stream_frames_sent;
  }
  wire::FrameHeader header;
  header.type = type;
  header.stream = stream;
  header.aux = aux;
  header.flags = flags;
  sender_.Add(header, payload, order_.delivered());
}

void Session::AttachStream(uint32_t stream, StreamEvents* events) {
  if (closed()) {
    return events->OnReset(absl::UnavailableError("Penstock session closed"),
                           /*from_peer=*/false);
  }
  std::unique_ptr<Stream>& entry = streams_[stream];
  if (entry == nullptr) {
    entry = std::make_unique<Stream>(peer_window_, config_.stream_window);
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

bool Session::IsWaiting(uint32_t stream) const {
  auto it = streams_.find(stream);
  return it != streams_.end() && it->second->events == nullptr &&
         !it->second->draining;
}

void Session::DetachStream(uint32_t stream) {
  Stream* found = FindStream(stream);
  if (found == nullptr) return;
  found->events = nullptr;
  found->draining = true;
  const std::list<Stream::Unconsumed> unconsumed = std::move(found->unconsumed);
  found->inbox = protocol::Inbox();
  if (found->blocked) found->outgoing.clear();
  if (found->outgoing.empty()) EndStream(stream);
  reader_.Abandon(stream);
  for (const Stream::Unconsumed& entry : unconsumed) {
    reader_.Consumed(entry.budgeted);
  }
}

void Session::DropUnsent(uint32_t stream) {
  Stream* found = FindStream(stream);
  if (found != nullptr) found->outgoing.clear();
}

// A client's stream becomes an open one with its first frame, if there is room.
bool Session::MustWait(Stream* stream, uint32_t id) {
  if (!config_.is_client || stream->counted) return false;
  if (stream->blocked) return true;
  if (open_streams_ < max_streams_) {
    stream->counted = true;
    ++open_streams_;
    return false;
  }
  stream->blocked = true;
  blocked_streams_.push_back(id);
  return true;
}

bool Session::IsBlocked(uint32_t stream) const {
  auto it = streams_.find(stream);
  return it != streams_.end() && it->second->blocked;
}

void Session::OpenWaitingStreams() {
  while (!blocked_streams_.empty() && open_streams_ < max_streams_) {
    const uint32_t id = blocked_streams_.front();
    blocked_streams_.pop_front();
    Stream* found = FindStream(id);
    if (found == nullptr) continue;  // it was cancelled
    found->blocked = false;
    found->counted = true;
    ++open_streams_;
    SendOutgoing(id);
  }
}

void Session::Uncount(Stream* stream) {
  if (stream->counted) --open_streams_;
  stream->counted = false;
}

void Session::EndStream(uint32_t stream) {
  auto it = streams_.find(stream);
  if (it == streams_.end()) return;
  Uncount(it->second.get());
  unread_by_peer_ -= it->second->send_window.used();
  streams_.erase(it);
  OpenWaitingStreams();
}

void Session::SendHeaders(uint32_t stream, absl::string_view metadata) {
  Stream* found = FindStream(stream);
  if (found == nullptr) return;
  if (!MustWait(found, stream) && found->outgoing.empty()) {
    return Add(FrameType::kHeaders, stream, 0, metadata);
  }
  Stream::Outgoing outgoing;
  outgoing.type = FrameType::kHeaders;
  outgoing.metadata = std::string(metadata);
  AddOutgoing(stream, std::move(outgoing));
}

bool Session::SendMessage(uint32_t stream, memory::Payload message,
                          bool compressed, bool last) {
  Stream* found = FindStream(stream);
  if (found == nullptr) return true;
  uint8_t flags = compressed ? wire::kCompressed : 0;
  if (last) flags |= wire::kLast;
  const bool waits = MustWait(found, stream) || !found->outgoing.empty();
  if (!waits && found->send_window.open()) {
    AddMessage(stream, found, message, flags);
    return true;
  }
  Stream::Outgoing outgoing;
  outgoing.type = FrameType::kMessage;
  outgoing.message = std::move(message);
  outgoing.flags = flags;
  found->outgoing.push_back(std::move(outgoing));
  return false;
}

void Session::SendHalfClose(uint32_t stream) {
  Stream::Outgoing outgoing;
  outgoing.type = FrameType::kHalfClose;
  AddOutgoing(stream, std::move(outgoing));
}

void Session::SendTrailers(uint32_t stream, absl::string_view metadata) {
  Stream::Outgoing outgoing;
  outgoing.type = FrameType::kTrailers;
  outgoing.metadata = std::string(metadata);
  AddOutgoing(stream, std::move(outgoing));
}

void Session::AddOutgoing(uint32_t stream, Stream::Outgoing outgoing) {
  Stream* found = FindStream(stream);
  if (found == nullptr) return;
  found->outgoing.push_back(std::move(outgoing));
  if (!MustWait(found, stream)) SendOutgoing(stream);
}

void Session::SendOutgoing(uint32_t stream) {
  // An event may detach the stream: look it up each time.
  for (auto it = streams_.find(stream);
       it != streams_.end() && !it->second->outgoing.empty();
       it = streams_.find(stream)) {
    Stream* found = it->second.get();
    const bool is_message = found->outgoing.front().type == FrameType::kMessage;
    if (is_message && !found->send_window.open()) return;
    const Stream::Outgoing next = std::move(found->outgoing.front());
    found->outgoing.pop_front();
    if (!is_message) {
      Add(next.type, stream, 0, next.metadata);
    } else {
      AddMessage(stream, found, next.message, next.flags);
      if (found->events != nullptr) found->events->OnSendAccepted();
    }
  }
  auto it = streams_.find(stream);
  if (it != streams_.end() && it->second->draining) EndStream(stream);
}

bool Session::IsEager(size_t bytes) const {
  if (bytes == 0) return true;  // there is nothing to read
  return bytes <= send_meter_.eager_max_bytes() &&
         unread_by_peer_ < config_.max_eager_unread;
}

void Session::AddMessage(uint32_t stream, Stream* entry,
                         const memory::Payload& message, uint8_t flags) {
  const bool eager = IsEager(message.size());
  const uint64_t cost = protocol::MessageCost(message.size());
  entry->send_window.Use(cost);
  unread_by_peer_ += cost;
  ++counters_.messages_sent;
  counters_.bytes_sent += message.size();
  const uint64_t begun_ns = send_meter_.Begin(message.size());
  if (!eager && AddAnnounce(stream, message, flags, begun_ns)) return;
  if (message.pieces().size() == 1) {
    const memory::Bytes& bytes = message.pieces()[0];
    Add(FrameType::kMessage, stream, 0, AsText(bytes.span()), flags);
  } else {
    std::string bytes(message.size(), '\0');
    message.CopyTo(reinterpret_cast<uint8_t*>(&bytes[0]));
    Add(FrameType::kMessage, stream, 0, bytes, flags);
  }
  if (eager) send_meter_.OnCopied(begun_ns, message.size());
}

bool Session::AddAnnounce(uint32_t stream, const memory::Payload& message,
                          uint8_t flags, uint64_t begun_ns) {
  wire::Announce announce;
  announce.id = next_announce_++;
  announce.length = message.size();
  Announced announced;
  memory::Payload stable = message;
  if (using_fast_) {
    absl::StatusOr<fabric::Exposure> fast = fast_->Expose(message);
    if (fast.ok()) {
      announced.fast_path = fast_.get();
      announced.fast = fast->region;
      stable = std::move(fast->stable);
      announce.regions.push_back(
          {handshake_.epoch(), announced.fast.key, announced.fast.offset});
    }
  }
  // A path may be lost before the peer has read: the lifeline leads there too.
  // Not pushed to a peer that leaves unread what it has.
  const bool push = !using_fast_ && unread_by_peer_ < config_.max_eager_unread;
  absl::StatusOr<fabric::Exposure> slow =
      push ? lifeline_->ExposeToPush(stable) : lifeline_->Expose(stable);
  if (slow.ok()) {
    if (push) sender_.PushBehind(slow->region);
    announced.lifeline = slow->region;
    announce.regions.push_back({0, slow->region.key, slow->region.offset});
  }
  if (announce.regions.empty()) return false;
  announced.length = message.size();
  const bool on_active = (announced.fast_path != nullptr) == using_fast_;
  if (announced_.empty() && on_active) announced.begun_ns = begun_ns;
  announced_[announce.id] = announced;
  Add(FrameType::kAnnounce, stream, 0, wire::EncodeAnnounce(announce), flags);
  if (on_active) send_meter_.OnAnnounced(begun_ns, message.size());
  return true;
}

void Session::OnRelease(uint64_t id) {
  auto it = announced_.find(id);
  if (it == announced_.end()) return;
  const Announced& announced = it->second;
  // A path that was lost meanwhile, or came into use, had no part in it.
  if ((announced.fast_path != nullptr) == using_fast_) {
    send_meter_.OnReleased(announced.begun_ns, announced.length);
  }
  if (announced.fast_path != nullptr) {
    announced.fast_path->Withdraw(announced.fast);
  }
  lifeline_->Withdraw(announced.lifeline);
  announced_.erase(it);
}

void Session::SendReset(uint32_t stream, const absl::Status& status) {
  DropUnsent(stream);
  Stream* found = FindStream(stream);
  if (found != nullptr && found->blocked) return;  // the peer never saw it
  uint32_t aux = static_cast<uint32_t>(status.code());
  if (IsRefusal(status)) aux |= wire::kRefused;
  Add(FrameType::kReset, stream, aux, status.message());
}

void Session::WantMessage(uint32_t stream) {
  Stream* found = FindStream(stream);
  if (found == nullptr) return;
  found->wants_message = true;
  StartIfWanted(*found);
}

// The budget may not hold back what the application waits for: it could wait
// for ever.
void Session::StartIfWanted(const Stream& stream) {
  if (!stream.wants_message || stream.unconsumed.empty()) return;
  reader_.Want(stream.unconsumed.front().id);
}

void Session::Consumed(uint32_t stream) {
  Stream* found = FindStream(stream);
  if (found == nullptr || found->unconsumed.empty()) return;
  found->wants_message = false;
  const Stream::Unconsumed oldest = found->unconsumed.front();
  found->unconsumed.pop_front();
  found->unconsumed_cost -= oldest.cost;
  const uint64_t credit = found->receive_window.Consume(oldest.cost);
  reader_.Consumed(oldest.budgeted);
  if (credit == 0) return;
  // A message may be longer than what a credit frame can say.
  for (uint64_t rest = credit; rest > 0;) {
    const uint32_t part =
        static_cast<uint32_t>(std::min<uint64_t>(rest, UINT32_MAX));
    Add(FrameType::kCredit, stream, part, absl::string_view());
    rest -= part;
  }
}

void Session::SendGoaway(uint32_t last_stream, const absl::Status& status) {
  Add(FrameType::kGoaway, last_stream, static_cast<uint32_t>(status.code()),
      status.message());
}

void Session::SendPing(uint64_t cookie) {
  std::string payload;
  wire::AppendNumber<uint64_t>(cookie, &payload);
  Add(FrameType::kPing, 0, 0, payload);
}

}  // namespace session
}  // namespace penstock
