#include "transport/rpc/client_stream.h"

#include "transport/rpc/head.h"

namespace penstock {
namespace rpc {

void ClientStream::Run(Step step) {
  std::shared_ptr<CallConnection> connection;
  {
    base::MutexLock lock(&mu_);
    if (connection_ == nullptr && !is_unsent_) {
      return early_.push_back(std::move(step));
    }
    connection = connection_;
  }
  if (connection == nullptr) return step(nullptr);
  CallConnection::Section section(connection.get());
  step(&*messages_);
}

void ClientStream::Write(memory::Payload message, Accepted accepted,
                         bool is_last) {
  Run([this, message = std::move(message), accepted = std::move(accepted),
       is_last](StreamMessages* messages) mutable {
    if (messages != nullptr) {
      const absl::Status status =
          messages->Write(message, std::move(accepted), is_last);
      if (!status.ok() && state_ == State::kOpen) Abort(status);
    } else if (accepted != nullptr) {
      executor_->Post([accepted = std::move(accepted)] { accepted(false); });
    }
  });
}

void ClientStream::Read(Received received) {
  Run([this, received = std::move(received)](StreamMessages* messages) mutable {
    if (messages != nullptr) return messages->Read(std::move(received));
    executor_->Post(
        [received = std::move(received)] { received(absl::nullopt); });
  });
}

void ClientStream::HalfClose() {
  Run([](StreamMessages* messages) {
    if (messages != nullptr) messages->HalfClose();
  });
}

void ClientStream::Start(CallConnection* connection) {
  if (state_ != State::kWaiting) return;
  state_ = State::kOpen;
  self_ = shared_from_this();
  connection->AddCalls(1);
  opened_on_ = connection;
  stream_ = connection->NextStream();
  messages_.emplace(connection, stream_);
  std::vector<Step> early;
  {
    base::MutexLock lock(&mu_);
    connection_ = connection->ShareSelf();
    early.swap(early_);
  }
  session::Session* const session = connection->session();
  const bool is_closed = session->closed();
  if (is_closed) {
    messages_->End();
  } else {
    session->AttachStream(stream_, this);
    session->output().SendHeaders(stream_, head_);
  }
  head_.clear();
  for (Step& step : early) step(&*messages_);
  // Resets the stream of a closed session, after the reports of the steps.
  if (is_closed) session->AttachStream(stream_, this);
  // Destroys the steps later, without the lock, because they own messages.
  connection->RunLater([early = std::move(early)] {});
}

ClientStream::Unsent ClientStream::TakeUnsent() {
  if (state_ != State::kWaiting) return nullptr;
  state_ = State::kOver;
  std::vector<Step> early;
  {
    base::MutexLock lock(&mu_);
    is_unsent_ = true;
    early.swap(early_);
  }
  return [self = shared_from_this(), early = std::move(early),
          metadata = std::move(reports_.metadata),
          end = std::move(reports_.end)](const absl::Status& why) {
    for (const Step& step : early) step(nullptr);
    // Reports the end after the callbacks of the steps.
    self->executor_->Post([end, why] { end(End{why, ""}); });
  };
}

void ClientStream::Cancel(const absl::Status& why) {
  if (state_ == State::kOpen) Abort(why);
}

void ClientStream::Abort(const absl::Status& why) {
  opened_on_->session()->output().SendReset(stream_, why);
  opened_on_->session()->streams().Detach(stream_);
  messages_->Drop();
  Finish(End{why, ""});
}

void ClientStream::OnHeaders(absl::string_view metadata) {
  if (has_answered_ || metadata.size() > kMaxMetadataBytes) {
    return Abort(absl::InternalError("the peer's answer is malformed"));
  }
  ReportMetadata(std::string(metadata));
}

void ClientStream::ReportMetadata(std::string metadata) {
  has_answered_ = true;
  opened_on_->RunLater([report = std::move(reports_.metadata),
                        metadata = std::move(metadata)] { report(metadata); });
}

void ClientStream::OnMessage(const memory::Payload& message, bool compressed) {
  if (opened_on_->IsTooLarge(message)) {
    return OnMessageTooLarge(message.size());
  }
  if (!has_answered_) ReportMetadata("");
  const absl::Status status = messages_->OnMessage(message, compressed);
  if (!status.ok()) Abort(status);
}

void ClientStream::OnMessageTooLarge(uint64_t bytes) {
  const absl::Status why = opened_on_->TooLarge(bytes);
  opened_on_->session()->output().SendReset(stream_, why);
  opened_on_->session()->streams().Detach(stream_);
  messages_->End();  // the messages before stay readable
  Finish(End{why, ""});
}

void ClientStream::OnHalfClose() {
  Abort(absl::InternalError("the peer's answer is malformed"));
}

void ClientStream::OnTrailers(absl::string_view metadata) {
  // Drops the queue, because the server reads no more of the stream.
  opened_on_->session()->output().DropUnsent(stream_);
  opened_on_->session()->streams().Detach(stream_);
  messages_->End();
  absl::StatusOr<End> end = ParseEnd(metadata);
  if (!end.ok()) end = End{absl::InternalError(end.status().message()), ""};
  Finish(*std::move(end));
}

void ClientStream::OnReset(const absl::Status& status, bool) {
  messages_->Drop();
  Finish(
      End{status.ok() ? absl::InternalError("the peer reset the call") : status,
          ""});
}

void ClientStream::Finish(End end) {
  state_ = State::kOver;
  opened_on_->AddCalls(-1);
  opened_on_->RunLater([self = std::move(self_),
                        report = std::move(reports_.end),
                        metadata = std::move(reports_.metadata),
                        end = std::move(end)] { report(end); });
}

}  // namespace rpc
}  // namespace penstock
