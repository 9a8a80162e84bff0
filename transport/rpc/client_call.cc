#include "transport/rpc/client_call.h"

#include "transport/rpc/head.h"
#include "transport/rpc/owned.h"

namespace penstock {
namespace rpc {

void ClientCall::Start(CallConnection* connection) {
  if (state_ != State::kWaiting) return;
  state_ = State::kOpen;
  connection_ = connection;
  self_ = shared_from_this();
  connection->AddCalls(1);
  session::Session* const session = connection->session();
  stream_ = connection->NextStream();
  session->AttachStream(stream_, this);  // a closed session resets the stream
  if (state_ != State::kOpen) return;
  const absl::Status size = connection->CheckSend(payload_);
  if (!size.ok()) return Abort(size);
  session->output().SendHeaders(stream_, head_);
  if (payload_.size() == 0) {
    session->output().SendHalfClose(stream_);
  } else {
    session->output().SendMessage(stream_, Guarded(payload_),
                                  /*compressed=*/false,
                                  /*last=*/true);
  }
  head_.clear();
  payload_ = memory::Payload();
  session->input().WantMessage(stream_);  // always accept the response
}

void ClientCall::Cancel(const absl::Status& why) {
  if (state_ == State::kOpen) Abort(why);
}

void ClientCall::Abort(const absl::Status& why) {
  connection_->session()->output().SendReset(stream_, why);
  connection_->session()->streams().Detach(stream_);
  Finish(why);
}

void ClientCall::OnHeaders(absl::string_view metadata) {
  if (metadata.size() > kMaxMetadataBytes) {
    return Abort(absl::InternalError("the peer's answer is malformed"));
  }
  response_.metadata = std::string(metadata);
}

void ClientCall::OnMessage(const memory::Payload& message, bool compressed) {
  if (has_message_ || compressed) {
    return Abort(absl::InternalError("the peer's answer is malformed"));
  }
  if (connection_->IsTooLarge(message)) {
    return OnMessageTooLarge(message.size());
  }
  has_message_ = true;
  absl::StatusOr<memory::Payload> owned = Owned(message);
  if (!owned.ok()) return Abort(owned.status());
  response_.payload = *std::move(owned);
  connection_->session()->input().Consumed(stream_);
}

void ClientCall::OnMessageTooLarge(uint64_t bytes) {
  Abort(connection_->TooLarge(bytes));
}

void ClientCall::OnHalfClose() {
  Abort(absl::InternalError("the peer's answer is malformed"));
}

void ClientCall::OnTrailers(absl::string_view metadata) {
  connection_->session()->streams().Detach(stream_);
  absl::StatusOr<End> end = ParseEnd(metadata);
  if (!end.ok()) return Finish(absl::InternalError(end.status().message()));
  if (!end->status.ok()) return FinishWithError(*std::move(end));
  if (!has_message_) response_.metadata = std::move(end->metadata);
  Finish(std::move(response_));
}

void ClientCall::FinishWithError(End end) {
  if (!end.metadata.empty()) {
    end.status.SetPayload(kMetadataUrl, absl::Cord(end.metadata));
  }
  Finish(std::move(end.status));
}

void ClientCall::OnReset(const absl::Status& status, bool) {
  Finish(status.ok() ? absl::InternalError("the peer reset the call") : status);
}

void ClientCall::Finish(absl::StatusOr<Response> result) {
  connection_->AddCalls(-1);
  // Reports later, without locks, because the report may drop the last
  // reference to the response or to this call.
  connection_->RunLater(
      [self = std::move(self_), done = TakeDone(),
       result = std::move(result)]() mutable { done(std::move(result)); });
}

}  // namespace rpc
}  // namespace penstock
