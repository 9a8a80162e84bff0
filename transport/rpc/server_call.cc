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
  if (is_stream) {
    return Refuse(absl::UnimplementedError("this server takes no streams"));
  }
  request_ = *std::move(request);
  if (connection_->recorded_client() == 0) return;
  recorded_.Begin(record::Recorder::OfProcess(), connection_->recorded_client(),
                  request_.method);
}

void ServerCall::OnMessage(const memory::Payload& message, bool compressed) {
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
  Refuse(absl::ResourceExhaustedError(absl::StrCat(
      "the request's payload has ", bytes, " bytes, more than are taken")));
}

void ServerCall::OnHalfClose() {
  if (state_ != State::kReceiving || !has_head_) {
    return Refuse(absl::InternalError("the request is malformed"));
  }
  state_ = State::kHandled;
  recorded_.Received(request_.metadata.size() + request_.payload.size());
  connection_->RunLater([self = shared_from_this(),
                         handler = std::move(handler_)] { handler(self); });
}

void ServerCall::OnTrailers(absl::string_view) {
  Refuse(absl::InternalError("a client sent trailers"));
}

void ServerCall::OnReset(const absl::Status&, bool) {
  cancelled_ = true;
  recorded_.End(static_cast<int>(absl::StatusCode::kCancelled));
  if (on_cancel_ != nullptr) connection_->RunLater(std::move(on_cancel_));
  on_cancel_ = nullptr;
  Finish();
}

void ServerCall::OnCancel(std::function<void()> cancelled) {
  CallConnection::Section section(connection_.get());
  if (cancelled_) {
    connection_->RunLater(std::move(cancelled));
  } else if (state_ != State::kOver) {
    on_cancel_ = std::move(cancelled);
  }
}

void ServerCall::Refuse(const absl::Status& why) {
  if (state_ != State::kOver) Send(why);
}

void ServerCall::Respond(absl::StatusOr<Response> response) {
  if (response.ok() && response->metadata.size() > kMaxMetadataBytes) {
    response = absl::InternalError(
        absl::StrCat("the answer's metadata has ", response->metadata.size(),
                     " bytes, and ", kMaxMetadataBytes, " at most are sent"));
  }
  CallConnection::Section section(connection_.get());
  if (state_ == State::kOver) return;
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
  }
  session->output().SendTrailers(stream_, EncodeEnd(end));
  session->streams().Detach(stream_);  // queued output is still sent
  Finish();
}

// Ends the call. Destroys the callbacks later, without the lock, because the
// callbacks may hold the last share.
void ServerCall::Finish() {
  state_ = State::kOver;
  connection_->AddCalls(-1);
  connection_->RunLater(
      [self = std::move(self_), on_cancel = std::move(on_cancel_)] {});
  on_cancel_ = nullptr;
}

}  // namespace rpc
}  // namespace penstock
