#include "transport/session/streams.h"

namespace penstock {
namespace session {
namespace {

// A client times its first kFirstTimed streams, and later one of
// kStreamsPerSample. Reading the clock twice costs about 50 ns.
constexpr uint64_t kFirstTimed = 128;
constexpr uint64_t kStreamsPerSample = 8;

bool IsTimed(uint64_t before) {
  return before < kFirstTimed || before % kStreamsPerSample == 0;
}

}  // namespace

Streams::Streams(const Parts& parts, SessionEvents* events)
    : config_(*parts.config),
      counters_(parts.counters),
      recorder_(parts.recorder),
      events_(events),
      admission_(config_.max_streams),
      input_(parts, &table_, this),
      output_(parts, &table_, &admission_, this) {}

void Streams::OnHello(uint64_t peer_window, uint32_t max_streams) {
  peer_window_ = peer_window;
  output_.set_peer_window(peer_window);
  if (config_.is_client) admission_.set_max_streams(max_streams);
}

Stream* Streams::Add(uint32_t id) {
  Stream* const added = table_.Add(id, peer_window_, config_.stream_window);
  const uint64_t before = counters_->streams_started++;
  recorder_->OnStreamBegun(id);
  added->begun_ns = recorder_->Begin();
  if (config_.is_client && IsTimed(before) &&
      config_.tuning.now_ns != nullptr) {
    added->begun_ns = config_.tuning.now_ns();
    added->is_sample = true;
  }
  return added;
}

void Streams::Erase(uint32_t id, const Stream& stream) {
  if (!stream.has_status) ++counters_->streams_reset;
  recorder_->OnStreamEnded(id, stream.begun_ns, stream.has_status,
                           counters_->sending);
  table_.Erase(id);
}

absl::Status Streams::OnHeaders(uint32_t id,
                                absl::Span<const uint8_t> metadata) {
  const bool is_new = !config_.is_client && id > last_opened_;
  if (is_new && !AddOpened(id)) return absl::OkStatus();
  absl::Status status =
      input_.OnMetadata(id, protocol::Inbox::Kind::kHeaders, metadata);
  if (is_new) events_->OnStreamOpened(id);
  return status;
}

// Adds a stream that the peer has opened. Returns false if the limit of open
// streams is reached.
bool Streams::AddOpened(uint32_t id) {
  last_opened_ = id;
  if (admission_.full()) {
    output_.SendReset(id, absl::UnavailableError(
                              "more streams than the server takes at once"));
    return false;
  }
  Stream* const added = Add(id);
  admission_.Open(added);
  input_.OnOpened(added);
  return true;
}

bool Streams::IsUnattached(uint32_t id) {
  const Stream* const found = table_.Find(id);
  return found != nullptr && found->events == nullptr;
}

bool Streams::IsBlocked(uint32_t id) {
  const Stream* const found = table_.FindAny(id);
  return found != nullptr && found->blocked;
}

void Streams::Attach(uint32_t id, StreamEvents* events) {
  Stream* stream = table_.FindAny(id);
  if (stream == nullptr) stream = Add(id);
  stream->events = events;
  input_.OnAttached(id);
  stream = table_.Find(id);
  if (stream != nullptr && stream->reset.has_value()) {
    const absl::Status status = *stream->reset;
    Detach(id);
    events->OnReset(status, /*from_peer=*/true);
  }
}

void Streams::Detach(uint32_t id) {
  Stream* stream = table_.Find(id);
  if (stream == nullptr) return;
  stream->events = nullptr;
  stream->draining = true;
  input_.OnDetached(id, stream);
  stream = table_.FindAny(id);
  if (stream != nullptr && !output_.Drain(stream)) EndStream(id);
}

void Streams::EndStream(uint32_t id) {
  Stream* const stream = table_.FindAny(id);
  if (stream == nullptr) return;
  admission_.Close(stream);
  output_.OnEnd(*stream);
  Erase(id, *stream);
  output_.SendBlocked();
}

void Streams::OnPeerReset(uint32_t id, const absl::Status& status) {
  if (table_.Find(id) == nullptr) {
    EndStream(id);  // nobody wants the queued data
  } else {
    Reset(id, status, /*from_peer=*/true);
  }
}

void Streams::FailStream(uint32_t id, const absl::Status& status) {
  output_.SendReset(id, status);
  if (table_.Find(id) == nullptr) {
    EndStream(id);  // the stream is draining
  } else {
    Reset(id, status, /*from_peer=*/false);
  }
}

void Streams::Reset(uint32_t id, const absl::Status& status, bool from_peer) {
  Stream* const stream = table_.Find(id);
  stream->queued.clear();
  if (stream->events == nullptr) {
    stream->reset = status;
    admission_.Close(stream);
    return;
  }
  StreamEvents* const events = stream->events;
  Detach(id);
  events->OnReset(status, from_peer);
}

void Streams::Close(const absl::Status& status) {
  while (!table_.empty()) {
    const uint32_t id = table_.first_id();
    const Stream& stream = *table_.FindAny(id);
    StreamEvents* const events = stream.events;
    Erase(id, stream);
    if (events != nullptr) events->OnReset(status, /*from_peer=*/false);
  }
  output_.Stop();
}

}  // namespace session
}  // namespace penstock
