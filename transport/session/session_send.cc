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

uint8_t MessageFlags(bool compressed, bool last) {
  uint8_t flags = compressed ? wire::kCompressed : 0;
  if (last) flags |= wire::kLast;
  return flags;
}

absl::string_view AsText(absl::Span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The message's only piece, or all of them in `copy`.
absl::string_view Gather(const memory::Payload& message, std::string* copy) {
  if (message.pieces().size() == 1) return AsText(message.pieces()[0].span());
  copy->resize(message.size());
  message.CopyTo(reinterpret_cast<uint8_t*>(&(*copy)[0]));
  return *copy;
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

bool Session::IsWaiting(uint32_t stream) {
  const Stream* const found = FindStream(stream);
  return found != nullptr && found->events == nullptr;
}

void Session::DetachStream(uint32_t stream) {
  Stream* found = FindStream(stream);
  if (found == nullptr) return;
  found->events = nullptr;
  found->draining = true;
  base::Fifo<Stream::Unconsumed> unconsumed = std::move(found->unconsumed);
  found->inbox = protocol::Inbox();
  LetGo(found, found->held_bytes);
  if (found->blocked) found->outgoing.clear();
  if (found->outgoing.empty()) {
    EndStream(stream);
  } else {
    ChargeUnsent(found);
  }
  reader_.Abandon(stream);
  for (const Stream::Unconsumed& entry : unconsumed) {
    reader_.Consumed(entry.budgeted);
  }
}

// Nobody waits for it any more, so nothing else bounds how much of it there is.
void Session::ChargeUnsent(Stream* stream) {
  constexpr uint64_t kDrainingOverhead = 512;
  stream->unsent_bytes = kDrainingOverhead;
  for (const Stream::Outgoing& outgoing : stream->outgoing) {
    stream->unsent_bytes += outgoing.message.size() + outgoing.metadata.size();
  }
  budget_.Charge(Budget::Kind::kReplies, stream->unsent_bytes);
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

bool Session::IsBlocked(uint32_t stream) {
  const Stream* const found = streams_.Find(stream);
  return found != nullptr && found->blocked;
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
  Stream* const found = streams_.Find(stream);
  if (found == nullptr) return;
  Uncount(found);
  unread_by_peer_ -= found->send_window.used();
  LetGo(found, found->held_bytes);
  budget_.Return(Budget::Kind::kReplies, found->unsent_bytes);
  budget_.Charge(Budget::Kind::kReplies, found->exposed_bytes);
  streams_.Erase(stream);
  OpenWaitingStreams();
}

void Session::SendHeaders(uint32_t stream, absl::string_view metadata) {
  AddInOrder(FrameType::kHeaders, stream, metadata);
}

bool Session::SendEager(uint32_t stream, absl::string_view message,
                        bool compressed, bool last) {
  Stream* found = FindStream(stream);
  if (found == nullptr) return true;
  if (!IsEager(message.size()) || MustWait(found, stream) ||
      !found->outgoing.empty() || !budget_.sends() || !MaySendMessage(*found)) {
    return false;
  }
  AddEager(stream, found, message, MessageFlags(compressed, last));
  return true;
}

bool Session::SendMessage(uint32_t stream, memory::Payload message,
                          bool compressed, bool last) {
  Stream* found = FindStream(stream);
  if (found == nullptr) return true;
  const uint8_t flags = MessageFlags(compressed, last);
  const bool waits = MustWait(found, stream) || !found->outgoing.empty();
  if (!waits && budget_.sends() && MaySendMessage(*found)) {
    AddMessage(stream, found, message, flags);
    return true;
  }
  Stream::Outgoing outgoing;
  outgoing.type = FrameType::kMessage;
  outgoing.message = std::move(message);
  outgoing.flags = flags;
  found->outgoing.push_back(std::move(outgoing));
  if (!waits && !budget_.sends()) WaitForRoom(stream, found);
  return false;
}

void Session::SendHalfClose(uint32_t stream) {
  AddInOrder(FrameType::kHalfClose, stream, absl::string_view());
}

void Session::SendTrailers(uint32_t stream, absl::string_view metadata) {
  AddInOrder(FrameType::kTrailers, stream, metadata);
}

void Session::AddInOrder(FrameType type, uint32_t stream,
                         absl::string_view metadata) {
  Stream* found = FindStream(stream);
  if (found == nullptr) return;
  const bool waits = MustWait(found, stream) || !found->outgoing.empty();
  if (!waits && budget_.sends()) return Add(type, stream, 0, metadata);
  Stream::Outgoing outgoing;
  outgoing.type = type;
  outgoing.metadata = std::string(metadata);
  found->outgoing.push_back(std::move(outgoing));
  if (!waits) WaitForRoom(stream, found);
}

// What the peer gives credit for it has released before: one that does not
// gets no more than its window.
bool Session::MaySendMessage(const Stream& stream) const {
  return stream.send_window.open() &&
         (stream.exposed_bytes == 0 || stream.exposed_bytes < peer_window_);
}

void Session::WaitForRoom(uint32_t id, Stream* stream) {
  if (!std::exchange(stream->congested, true)) congested_.push_back(id);
}

void Session::SendCongested() {
  while (!congested_.empty() && budget_.sends()) {
    const uint32_t id = congested_.pop_front();
    Stream* const found = streams_.Find(id);
    if (found == nullptr) continue;
    found->congested = false;
    SendOutgoing(id);
    if (!budget_.sends()) sender_.Flush();
  }
  sender_.Flush();
}

void Session::SendOutgoing(uint32_t stream) {
  // An event may detach the stream: look it up each time.
  Stream* found = streams_.Find(stream);
  for (; found != nullptr && !found->outgoing.empty();
       found = streams_.Find(stream)) {
    if (found->blocked) return;
    if (!budget_.sends()) return WaitForRoom(stream, found);
    const bool is_message = found->outgoing.front().type == FrameType::kMessage;
    if (is_message && !MaySendMessage(*found)) return;
    const Stream::Outgoing next = found->outgoing.pop_front();
    if (!is_message) {
      Add(next.type, stream, 0, next.metadata);
    } else {
      AddMessage(stream, found, next.message, next.flags);
      if (found->events != nullptr) found->events->OnSendAccepted();
    }
  }
  if (found != nullptr && found->draining) EndStream(stream);
}

bool Session::IsEager(size_t bytes) const {
  if (bytes == 0) return true;  // there is nothing to read
  return bytes <= send_meter_.eager_max_bytes() &&
         unread_by_peer_ < config_.max_eager_unread;
}

void Session::UseWindow(Stream* stream, size_t bytes) {
  const uint64_t cost = protocol::MessageCost(bytes);
  stream->send_window.Use(cost);
  unread_by_peer_ += cost;
  ++counters_.messages_sent;
  counters_.bytes_sent += bytes;
}

void Session::AddEager(uint32_t id, Stream* stream, absl::string_view message,
                       uint8_t flags) {
  UseWindow(stream, message.size());
  const uint64_t begun_ns = send_meter_.Begin(message.size());
  Add(FrameType::kMessage, id, 0, message, flags);
  send_meter_.OnCopied(begun_ns, message.size());
}

void Session::AddMessage(uint32_t id, Stream* stream,
                         const memory::Payload& message, uint8_t flags) {
  std::string copy;
  if (IsEager(message.size())) {
    return AddEager(id, stream, Gather(message, &copy), flags);
  }
  UseWindow(stream, message.size());
  const uint64_t begun_ns = send_meter_.Begin(message.size());
  if (AddAnnounce(id, stream, message, flags, begun_ns)) return;
  Add(FrameType::kMessage, id, 0, Gather(message, &copy), flags);
}

bool Session::AddAnnounce(uint32_t id, Stream* stream,
                          const memory::Payload& message, uint8_t flags,
                          uint64_t begun_ns) {
  const bool is_first = exposures_.empty();
  fabric::Endpoint* const fast_path = using_fast_ ? fast_.get() : nullptr;
  // Not pushed to a peer that leaves unread what it has.
  const bool push = !using_fast_ && unread_by_peer_ < config_.max_eager_unread;
  const wire::Announce announce =
      exposures_.Add(id, message, fast_path, handshake_.epoch(), push);
  if (announce.regions.empty()) return false;
  stream->exposed_bytes += message.size();
  Exposures::Exposed* const exposed = exposures_.Find(announce.id);
  if (push) sender_.PushBehind(exposed->lifeline);
  const bool on_active = exposed->fast_path == fast_path;
  if (is_first && on_active) exposed->begun_ns = begun_ns;
  Add(FrameType::kAnnounce, id, 0, wire::EncodeAnnounce(announce), flags);
  if (on_active) send_meter_.OnAnnounced(begun_ns, message.size());
  return true;
}

void Session::OnRelease(uint64_t id) {
  const absl::optional<Exposures::Exposed> exposed = exposures_.Release(id);
  if (!exposed.has_value()) return;
  // A path that was lost meanwhile, or came into use, had no part in it.
  if ((exposed->fast_path != nullptr) == using_fast_) {
    send_meter_.OnReleased(exposed->begun_ns, exposed->length);
  }
  Stream* const stream = streams_.Find(exposed->stream);
  if (stream == nullptr) {
    return budget_.Return(Budget::Kind::kReplies, exposed->length);
  }
  stream->exposed_bytes -= exposed->length;
  if (!stream->outgoing.empty()) SendOutgoing(exposed->stream);
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
  const Stream::Unconsumed& next = stream.unconsumed.front();
  if (next.is_announced) reader_.Want(next.id);
}

void Session::Consumed(uint32_t stream) {
  Stream* found = FindStream(stream);
  if (found == nullptr || found->unconsumed.empty()) return;
  found->wants_message = false;
  const Stream::Unconsumed oldest = found->unconsumed.pop_front();
  found->unconsumed_cost -= oldest.cost;
  if (!oldest.is_announced) LetGo(found, oldest.cost);
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

void Session::SendEntry(uint32_t number, absl::string_view entry) {
  Add(FrameType::kEntry, 0, number, entry);
}

void Session::SendPing(uint64_t cookie) {
  std::string payload;
  wire::AppendNumber<uint64_t>(cookie, &payload);
  Add(FrameType::kPing, 0, 0, payload);
}

}  // namespace session
}  // namespace penstock
