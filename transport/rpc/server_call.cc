#include "transport/rpc/server_call.h"

#include "absl/strings/str_cat.h"
#include "transport/rpc/head.h"
#include "transport/rpc/owned.h"

namespace penstock {
namespace rpc {

void ServerCall::Attach() {
  self_ = shared_from_this();
  connection_->AddCalls(1);
  connection_->session()->AttachStream(stream_, this);
}

void ServerCall::OnHeaders(absl::string_view metadata) {
  if (has_head_ || state_ != State::kReceiving) {
    return Refuse(absl::InternalError("the request has two heads"));
  }
  has_head_ = true;
  bool is_stream = false;
  absl::StatusOr<Request> request = ParseRequest(metadata, &is_stream);
  if (!request.ok()) return Refuse(request.status());
  request_ = *std::move(request);
  if (connection_->recorded_client() != 0) {
    recorded_.Begin(record::Recorder::OfProcess(),
                    connection_->recorded_client(), request_.method);
  }
  if (is_stream) return BeginStream();
  if (placer_ == nullptr) return;
  connection_->session()->input().PostDestinations(
      stream_, (*placer_)(request_, peer()));
}

void ServerCall::BeginStream() {
  recorded_.Received(request_.metadata.size());
  messages_.emplace(connection_.get(), stream_);
  CallHandler();
}

void ServerCall::CallHandler() {
  state_ = State::kHandled;
  has_handler_ = true;
  connection_->RunLater([self = shared_from_this()] { self->RunHandler(); });
}

void ServerCall::RunHandler() {
  if (!has_handler_.exchange(false)) return;
  const Handler handler = std::move(handler_);
  handler(shared_from_this());
}

// Drops the handler and the request. A peer may open and reset streams faster
// than callbacks run. The requests of such calls must not stay in memory until
// the callbacks run.
void ServerCall::DropHandler() {
  if (!has_handler_.exchange(false)) return;
  LateOwners::Drop(std::make_shared<Handler>(std::move(handler_)));
  LateOwners::Drop(std::make_shared<Request>(std::move(request_)));
}

void ServerCall::OnMessage(const memory::Payload& message, bool compressed) {
  if (connection_->IsTooLarge(message)) {
    return OnMessageTooLarge(message.size());
  }
  if (is_stream()) {
    recorded_.Received(message.size());
    const absl::Status status = messages_->OnMessage(message, compressed);
    return status.ok() ? void() : Refuse(status);
  }
  // Refuses a message after the request's end, because the handler reads the
  // request without a lock.
  if (!has_head_ || has_message_ || compressed || state_ != State::kReceiving) {
    return Refuse(absl::InternalError("the request is malformed"));
  }
  has_message_ = true;
  absl::StatusOr<memory::Payload> owned = Owned(message);
  if (!owned.ok()) return Refuse(owned.status());
  request_.payload = *std::move(owned);
  connection_->session()->input().Consumed(stream_);
}

void ServerCall::OnMessageTooLarge(uint64_t bytes) {
  Refuse(connection_->TooLarge(bytes));
}

void ServerCall::OnHalfClose() {
  if (is_stream() && !messages_->input_ended()) return messages_->OnInputEnd();
  if (state_ != State::kReceiving || !has_head_) {
    return Refuse(absl::InternalError("the request is malformed"));
  }
  recorded_.Received(request_.metadata.size() + request_.payload.size());
  CallHandler();
}

void ServerCall::OnTrailers(absl::string_view) {
  Refuse(absl::InternalError("a client sent trailers"));
}

void ServerCall::OnReset(const absl::Status&, bool) {
  recorded_.End(static_cast<int>(absl::StatusCode::kCancelled));
  DropHandler();
  TellHandler();
  Finish();
}

void ServerCall::TellHandler() {
  cancelled_ = true;
  if (on_cancel_ == nullptr) return;
  connection_->RunLater([self = shared_from_this()] { self->RunOnCancel(); });
}

void ServerCall::RunOnCancel() {
  std::function<void()> cancelled;
  {
    CallConnection::Section section(connection_.get());
    cancelled = std::exchange(on_cancel_, nullptr);
  }
  if (cancelled != nullptr) cancelled();
}

void ServerCall::OnCancel(std::function<void()> cancelled) {
  CallConnection::Section section(connection_.get());
  if (!cancelled_ && state_ == State::kOver)
    return;  // the handler has answered
  on_cancel_ = std::move(cancelled);
  if (cancelled_) TellHandler();
}

bool ServerCall::IsOverForHandler() {
  if (state_ != State::kOver) return false;
  cancelled_ = false;
  DropOnCancel();
  return true;
}

// Destroys the callback at the end of the section, without the lock, because
// the callback may hold the last reference. Uses this thread, so that an answer
// need not wake the loop.
void ServerCall::DropOnCancel() {
  if (on_cancel_ == nullptr) return;
  LateOwners::Drop(
      std::make_shared<std::function<void()>>(std::move(on_cancel_)));
  on_cancel_ = nullptr;
}

void ServerCall::Refuse(const absl::Status& why) {
  if (state_ == State::kOver) return;
  if (state_ == State::kHandled) TellHandler();
  Send(why);
}

void ServerCall::Respond(absl::StatusOr<Response> response) {
  if (response.ok() && response->metadata.size() > kMaxMetadataBytes) {
    response = absl::InternalError(
        absl::StrCat("the answer's metadata has ", response->metadata.size(),
                     " bytes, and ", kMaxMetadataBytes, " at most are sent"));
  }
  if (response.ok()) {
    const absl::Status size = connection_->CheckSend(response->payload);
    if (!size.ok()) response = size;
  }
  CallConnection::Section section(connection_.get());
  if (IsOverForHandler()) return;
  Send(std::move(response));
}

void ServerCall::Send(absl::StatusOr<Response> response) {
  session::Session* const session = connection_->session();
  End end;
  if (response.ok()) {
    recorded_.Sent(response->metadata.size() + response->payload.size());
  }
  recorded_.End(static_cast<int>(response.status().code()));
  if (response.ok() && response->payload.size() > 0) {
    session->output().SendHeaders(stream_, response->metadata);
    session->output().SendMessage(stream_, Guarded(response->payload),
                                  /*compressed=*/false);
  } else if (response.ok()) {
    end.metadata = std::move(response->metadata);
  } else {
    end.status = response.status();
    const absl::optional<absl::Cord> metadata =
        end.status.GetPayload(kMetadataUrl);
    if (metadata.has_value()) end.metadata = std::string(*metadata);
  }
  SendEnd(end);
}

void ServerCall::SendEnd(const End& end) {
  session::Session* const session = connection_->session();
  session->output().SendTrailers(stream_, EncodeEnd(end));
  session->streams().Detach(stream_);  // queued output is still sent
  Finish();
}

void ServerCall::SendMetadata(absl::string_view metadata) {
  CallConnection::Section section(connection_.get());
  if (state_ == State::kOver || std::exchange(has_answered_, true)) return;
  if (metadata.size() > kMaxMetadataBytes) {
    return Refuse(absl::InternalError("the stream's metadata is too long"));
  }
  connection_->session()->output().SendHeaders(stream_, metadata);
}

void ServerCall::Write(const memory::Payload& message, Accepted accepted) {
  CallConnection::Section section(connection_.get());
  has_answered_ = true;
  if (state_ != State::kOver) recorded_.Sent(message.size());
  const absl::Status status = messages_->Write(message, std::move(accepted));
  if (!status.ok()) Refuse(status);
}

void ServerCall::Read(Received received) {
  CallConnection::Section section(connection_.get());
  messages_->Read(std::move(received));
}

void ServerCall::EndStream(End end) {
  if (end.metadata.size() > kMaxTrailingBytes) {
    end = End{absl::InternalError("the metadata at the end is too long"), ""};
  }
  CallConnection::Section section(connection_.get());
  if (IsOverForHandler()) return;
  recorded_.End(static_cast<int>(end.status.code()));
  SendEnd(end);
}

void ServerCall::Finish() {
  state_ = State::kOver;
  if (is_stream()) messages_->Drop();
  connection_->AddCalls(-1);
  if (!cancelled_) DropOnCancel();
  LateOwners::Drop(std::move(self_));
}

}  // namespace rpc
}  // namespace penstock
