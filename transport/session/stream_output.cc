#include "transport/session/stream_output.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "transport/session/refusal.h"
#include "transport/wire/announce.h"

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

// Sets `*text` to the message's only piece, or to all pieces concatenated in
// `copy`. Fails only if a device fails.
absl::Status Gather(const memory::Payload& message, std::string* copy,
                    absl::string_view* text) {
  if (message.pieces().size() == 1 && message.on_host()) {
    *text = AsText(message.pieces()[0].span());
    return absl::OkStatus();
  }
  copy->resize(message.size());
  absl::Status copied =
      message.CopyFromAnywhereTo(reinterpret_cast<uint8_t*>(&(*copy)[0]));
  *text = *copy;
  return copied;
}

}  // namespace

StreamOutput::StreamOutput(const Parts& parts, StreamTable* streams,
                           Admission* admission, Owner* owner)
    : config_(*parts.config),
      streams_(streams),
      admission_(admission),
      budget_(parts.budget),
      sender_(parts.sender),
      writer_(parts.writer),
      counters_(parts.counters),
      recorder_(parts.recorder),
      owner_(owner),
      meter_(config_.tuning, parts.lifeline->capabilities()),
      exposures_(parts.lifeline, budget_, config_.version) {}

void StreamOutput::UseFastPath(fabric::Endpoint* path, uint32_t epoch) {
  fast_path_ = path;
  fast_epoch_ = epoch;
  meter_.UseFastPath(path->capabilities());
}

void StreamOutput::LoseFastPath() {
  fast_path_ = nullptr;
  exposures_.LoseFastPath();
  meter_.LoseFastPath();
}

bool StreamOutput::MustQueue(uint32_t id, Stream* stream) {
  if (config_.is_client) admission_->OpenOrBlock(id, stream);
  return stream->blocked || !stream->queued.empty();
}

void StreamOutput::DropUnsent(uint32_t id) {
  Stream* found = streams_->Find(id);
  if (found != nullptr) found->queued.clear();
}

bool StreamOutput::SendEager(uint32_t id, absl::string_view message,
                             bool compressed, bool last) {
  Stream* found = streams_->Find(id);
  if (found == nullptr) return true;
  if (!IsEager(message.size()) || MustQueue(id, found) || !budget_->sends() ||
      !MaySendMessage(*found)) {
    return false;
  }
  AddEager(id, found, message, MessageFlags(compressed, last));
  return true;
}

bool StreamOutput::SendMessage(uint32_t id, memory::Payload message,
                               bool compressed, bool last) {
  Stream* found = streams_->Find(id);
  if (found == nullptr) return true;
  const uint8_t flags = MessageFlags(compressed, last);
  const bool waits = MustQueue(id, found);
  if (!waits && budget_->sends() && MaySendMessage(*found)) {
    (void)AddMessage(id, found, message, flags);
    return true;
  }
  Stream::Queued queued;
  queued.type = FrameType::kMessage;
  queued.message = std::move(message);
  queued.flags = flags;
  found->queued.push_back(std::move(queued));
  if (!waits && !budget_->sends()) {
    AddCongested(id, found);
  } else if (!waits) {
    ++counters_->window_stalls[static_cast<int>(counters_->sending)];
  }
  return false;
}

void StreamOutput::AddInOrder(FrameType type, uint32_t id,
                              absl::string_view metadata) {
  Stream* found = streams_->Find(id);
  if (found == nullptr) return;
  const bool waits = MustQueue(id, found);
  if (!waits && budget_->sends()) return writer_->Add(type, id, 0, metadata);
  Stream::Queued queued;
  queued.type = type;
  queued.metadata = std::string(metadata);
  found->queued.push_back(std::move(queued));
  if (!waits) AddCongested(id, found);
}

// Returns true if the stream's next message may be sent. An honest peer
// releases a message before it returns credit for the message. For other peers,
// exposed bytes are limited to one window.
bool StreamOutput::MaySendMessage(const Stream& stream) const {
  return stream.send_window.open() &&
         (stream.exposed_bytes == 0 || stream.exposed_bytes < peer_window_);
}

void StreamOutput::AddCongested(uint32_t id, Stream* stream) {
  if (!std::exchange(stream->congested, true)) congested_.push_back(id);
}

void StreamOutput::SendCongested() {
  while (!congested_.empty() && budget_->sends()) {
    const uint32_t id = congested_.pop_front();
    Stream* const found = streams_->FindAny(id);
    if (found == nullptr) continue;
    found->congested = false;
    SendQueued(id);
    if (!budget_->sends()) sender_->Flush();
  }
  sender_->Flush();
}

void StreamOutput::SendQueued(uint32_t id) {
  // Looks up the stream each time, because an event may detach it.
  Stream* found = streams_->FindAny(id);
  for (; found != nullptr && !found->queued.empty();
       found = streams_->FindAny(id)) {
    if (found->blocked) return;
    if (!budget_->sends()) return AddCongested(id, found);
    const bool is_message = found->queued.front().type == FrameType::kMessage;
    if (is_message && !MaySendMessage(*found)) return;
    const Stream::Queued next = found->queued.pop_front();
    if (!is_message) {
      writer_->Add(next.type, id, 0, next.metadata);
    } else {
      if (!AddMessage(id, found, next.message, next.flags)) continue;
      if (found->events != nullptr) found->events->OnSendAccepted();
    }
  }
  if (found != nullptr && found->draining) owner_->EndStream(id);
}

bool StreamOutput::IsEager(size_t bytes) const {
  if (bytes == 0) return true;  // nothing to read
  return bytes <= meter_.eager_max_bytes() &&
         unread_by_peer_ < config_.max_eager_unread;
}

void StreamOutput::UseWindow(Stream* stream, size_t bytes) {
  const uint64_t cost = protocol::MessageCost(bytes);
  stream->send_window.Use(cost);
  unread_by_peer_ += cost;
}

void StreamOutput::AddEager(uint32_t id, Stream* stream,
                            absl::string_view message, uint8_t flags) {
  UseWindow(stream, message.size());
  counters_->OnSent(metrics::Kind::kEager, message.size());
  const uint64_t begun_ns = meter_.Begin(message.size());
  writer_->Add(FrameType::kMessage, id, 0, message, flags);
  meter_.OnCopied(begun_ns, message.size());
}

bool StreamOutput::AddMessage(uint32_t id, Stream* stream,
                              const memory::Payload& message, uint8_t flags) {
  if (message.size() > wire::kMaxMessageBytes) {
    owner_->FailStream(id, absl::ResourceExhaustedError(absl::StrCat(
                               "a message of ", message.size(),
                               " bytes cannot be sent; the most are ",
                               wire::kMaxMessageBytes)));
    return false;
  }
  std::string copy;
  absl::string_view text;
  const bool is_eager = IsEager(message.size());
  if (!is_eager) {
    UseWindow(stream, message.size());
    const uint64_t begun_ns = meter_.Begin(message.size());
    if (AddAnnounce(id, stream, message, flags, begun_ns)) return true;
  }
  absl::Status gathered = Gather(message, &copy, &text);
  if (!gathered.ok()) {
    owner_->FailStream(id, gathered);
    return false;
  }
  if (is_eager) {
    AddEager(id, stream, text, flags);
  } else {
    counters_->OnSent(metrics::Kind::kEager, message.size());
    writer_->Add(FrameType::kMessage, id, 0, text, flags);
  }
  return true;
}

bool StreamOutput::AddAnnounce(uint32_t id, Stream* stream,
                               const memory::Payload& message, uint8_t flags,
                               uint64_t begun_ns) {
  const bool is_first = exposures_.empty();
  // Pushes only while the peer reads what it was sent.
  const bool may_push = unread_by_peer_ < config_.max_eager_unread;
  const wire::Announce announce =
      exposures_.Add(id, message, fast_path_, fast_epoch_, may_push);
  if (announce.regions.empty()) return false;
  stream->exposed_bytes += message.size();
  counters_->OnSent(metrics::Kind::kAnnounced, message.size());
  Exposures::Exposed* const exposed = exposures_.Find(announce.id);
  exposed->fabric =
      exposed->fast.empty() ? metrics::Fabric::kTcp : counters_->sending;
  exposed->announced_ns = Now();
  recorder_->OnAnnounced(id, message.size());
  if (exposed->is_pushed) sender_->PushBehind(exposed->lifeline);
  const bool on_active = exposed->fast_path == fast_path_;
  if (is_first && on_active) exposed->begun_ns = begun_ns;
  writer_->Add(FrameType::kAnnounce, id, 0,
               wire::EncodeAnnounce(announce, config_.version), flags);
  if (on_active) meter_.OnAnnounced(begun_ns, message.size());
  return true;
}

void StreamOutput::OnRelease(uint64_t id) {
  const absl::optional<Exposures::Exposed> exposed = exposures_.Release(id);
  if (!exposed.has_value()) return;
  if (exposed->announced_ns != 0) {
    counters_->announced[static_cast<int>(exposed->fabric)].Record(
        Now() - exposed->announced_ns);
    recorder_->OnReleased(exposed->stream, id, exposed->length,
                          exposed->announced_ns, exposed->fabric);
  }
  // Measures a release only if the present path is the one on which the message
  // was announced.
  if ((exposed->fast_path != nullptr) == (fast_path_ != nullptr)) {
    meter_.OnReleased(exposed->begun_ns, exposed->length);
  }
  Stream* const stream = streams_->FindAny(exposed->stream);
  if (stream == nullptr) {
    return budget_->Return(Budget::Kind::kReplies, exposed->length);
  }
  stream->exposed_bytes -= exposed->length;
  if (!stream->queued.empty()) SendQueued(exposed->stream);
}

void StreamOutput::SendReset(uint32_t id, const absl::Status& status) {
  DropUnsent(id);
  Stream* found = streams_->Find(id);
  if (found != nullptr && found->blocked) return;  // never sent
  uint32_t aux = static_cast<uint32_t>(status.code());
  if (IsRefusal(status)) aux |= wire::kRefused;
  writer_->Add(FrameType::kReset, id, aux, status.message());
}

bool StreamOutput::Drain(Stream* stream) {
  if (stream->blocked) stream->queued.clear();
  if (stream->queued.empty()) return false;
  // The charge for a draining stream, in addition to its bytes. No application
  // waits for a draining stream, so nothing else limits the number of such
  // streams.
  constexpr uint64_t kDrainingOverhead = 512;
  stream->unsent_bytes = kDrainingOverhead;
  for (const Stream::Queued& queued : stream->queued) {
    stream->unsent_bytes += queued.message.size() + queued.metadata.size();
  }
  budget_->Charge(Budget::Kind::kReplies, stream->unsent_bytes);
  return true;
}

void StreamOutput::OnEnd(const Stream& stream) {
  unread_by_peer_ -= stream.send_window.used();
  budget_->Return(Budget::Kind::kReplies, stream.unsent_bytes);
  budget_->Charge(Budget::Kind::kReplies, stream.exposed_bytes);
}

void StreamOutput::SendBlocked() {
  if (std::exchange(sending_blocked_, true)) return;  // reentered
  uint32_t id;
  while (admission_->TakeBlocked(&id)) {
    Stream* const found = streams_->Find(id);
    if (found == nullptr) continue;  // cancelled
    admission_->Open(found);
    SendQueued(id);
  }
  sending_blocked_ = false;
}

void StreamOutput::OnCredit(uint32_t id, uint64_t credit) {
  Stream* const found = streams_->FindAny(id);  // also while draining
  if (found == nullptr) return;
  unread_by_peer_ -= found->send_window.GiveBack(credit);
  SendQueued(id);
}

}  // namespace session
}  // namespace penstock
