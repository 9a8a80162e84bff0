#include "tests/fuzz/victim.h"

#include <utility>

namespace penstock {
namespace fuzz {
namespace {

// The size above which the victim allocates no memory for an announced message.
constexpr int64_t kMaxReceiveBytes = 256 * 1024;

session::Config ConfigOf(bool is_client) {
  session::Config config;
  config.is_client = is_client;
  config.offers = {{"shm", true, "there"}};
  if (!is_client) config.token = "fedcba9876543210";
  config.max_streams = 4;
  config.max_receive_bytes = kMaxReceiveBytes;
  // Sets small limits, so that short inputs reach them.
  config.stream_window = 64 * 1024;
  config.max_eager_unread = 16 * 1024;
  config.read_budget = 32 * 1024;
  return config;
}

}  // namespace

void VictimStream::OnMessage(const memory::Payload& message, bool) {
  Require(!ended_, "a message in time");
  uint8_t sum = 0;
  memory::Payload owned;
  for (const memory::Bytes& piece : message.pieces()) {
    for (uint8_t byte : piece.span()) sum += byte;  // the bytes are readable
    owned.Append(*memory::Own(piece));
  }
  volatile uint8_t used = sum;
  (void)used;
  if (manner_ == Manner::kRpc) return session_->input().Consumed(id_);
  messages_.push_back({std::move(owned), /*is_refused=*/false});
}

void VictimStream::OnMessageTooLarge(uint64_t bytes) {
  Require(!ended_, "word of a large message in time");
  Require(bytes > static_cast<uint64_t>(kMaxReceiveBytes), "it is too large");
  if (manner_ == Manner::kRpc) return Refuse();
  messages_.push_back({memory::Payload(), /*is_refused=*/true});
}

void VictimStream::Refuse() {
  if (is_client_) {
    session_->output().SendReset(id_,
                                 absl::ResourceExhaustedError("too large"));
  } else {
    session_->output().SendTrailers(id_, "too large");
  }
  Detach();
}

void VictimStream::OnSendAccepted() {
  Require(!ended_, "a send is accepted in time");
  Require(--sends_waiting_ >= 0, "what waits is accepted once");
}

void VictimStream::Consume() {
  if (messages_.empty()) return;
  const bool is_refused = messages_.front().is_refused;
  messages_.pop_front();
  if (ended_) return;
  session_->input().Consumed(id_);
  // Refuses the message, if this side is a client. On a server, gRPC ends the
  // stream later, in a separate step.
  if (is_refused && is_client_) Refuse();
}

void VictimStream::OnTrailers(absl::string_view) {
  Require(!ended_, "trailers in time");
  Detach();
}

void VictimStream::Detach() {
  ended_ = true;
  session_->streams().Detach(id_);
}

void VictimStream::End() {
  Require(!ended_, "a stream ends once");
  ended_ = true;
}

Victim::Victim(bool is_client, Manner manner,
               std::unique_ptr<fabric::Endpoint> lifeline)
    : is_client_(is_client),
      manner_(manner),
      session_(std::make_unique<session::Session>(
          ConfigOf(is_client), std::move(lifeline), this, this)) {}

void Victim::OnStreamOpened(uint32_t stream) {
  Require(!is_client_ && stream > last_opened_, "streams open in order");
  last_opened_ = stream;
}

void Victim::OnClosed(const absl::Status& cause) {
  Require(!closed_, "a session ends once");
  Require(!cause.ok(), "for a reason");
  closed_ = true;
}

void Victim::Attach(uint32_t stream) {
  if (is_client_) {
    if (stream <= last_opened_) return;
    last_opened_ = stream;
  } else if (!session_->streams().IsUnattached(stream)) {
    return;
  }
  const auto added =
      streams_.try_emplace(stream, session_.get(), stream, is_client_, manner_);
  session_->AttachStream(stream, &added.first->second);
}

void Victim::Take(Step step, Input* input) {
  const uint32_t stream = input->Number<uint8_t>();
  if (step == kAttach) {
    Attach(stream);
  } else if (step == kSessionCall) {
    CallSession(stream);
  } else {
    auto found = streams_.find(stream);
    if (found != streams_.end()) UseStream(step, stream, &found->second, input);
  }
  session_->Flush();
}

void Victim::UseStream(Step step, uint32_t stream, VictimStream* events,
                       Input* input) {
  switch (step) {
    case kWant:
      return session_->input().WantMessage(stream);
    case kConsume:
      return events->Consume();
    case kSendHeaders:
      return session_->output().SendHeaders(stream, "metadata");
    case kSendMessage:
      return Send(stream, events, input->Number<uint16_t>());
    case kSendHalfClose:
      return session_->output().SendHalfClose(stream);
    case kSendTrailers:
      return session_->output().SendTrailers(stream, "trailers");
    case kSendReset:
      return session_->output().SendReset(stream, absl::CancelledError("why"));
    case kDetach:
      return events->Detach();
    default:
      return session_->output().DropUnsent(stream);
  }
}

void Victim::Send(uint32_t stream, VictimStream* events, size_t bytes) {
  const auto text = std::make_shared<std::string>(bytes, 's');
  const memory::Bytes all{AsBytes(*text).data(), bytes, text};
  if (!session_->output().SendMessage(stream, memory::Payload(all), false)) {
    events->NoteSendWaits();
  }
}

void Victim::CallSession(int which) {
  switch (which % 8) {
    case 0:
      return session_->SendPing(which);
    case 1:
      return session_->SendGoaway(last_opened_, absl::UnavailableError("bye"));
    case 2:
      return session_->path().Retry();
    case 3:
      return session_->path().Offer("0123456789abcdef");
    case 4:
      return session_->path().OnFailure("shm",
                                        absl::UnavailableError("not here"));
    case 5:
      return session_->Close(absl::UnavailableError("enough"));
    default:
      (void)session_->Poll();
      (void)session_->path().Describe();
  }
}

void Victim::End() {
  session_->Close(absl::UnavailableError("the end"));
  session_->Flush();
  Require(closed_ && session_->closed(), "a session that is closed says so");
  for (const auto& entry : streams_) {
    Require(entry.second.ended(), "a session's end is its streams'");
  }
  session_.reset();
  streams_.clear();
}

}  // namespace fuzz
}  // namespace penstock
