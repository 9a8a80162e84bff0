#include "transport/rpc/stream_messages.h"

#include <utility>

#include "absl/status/statusor.h"
#include "transport/rpc/owned.h"

namespace penstock {
namespace rpc {

absl::Status StreamMessages::Write(const memory::Payload& message,
                                   Accepted accepted, bool is_last) {
  absl::Status size =
      output_ended_ ? absl::OkStatus() : connection_->CheckSend(message);
  if (output_ended_ || !size.ok()) {
    Report(std::move(accepted), false);
    return size;
  }
  const bool has_left = connection_->session()->output().SendMessage(
      stream_, Guarded(message), /*compressed=*/false, is_last);
  // Checks if the message was accepted. A message that cannot be sent has reset
  // the stream, and ended the output.
  const bool is_accepted = !output_ended_;
  if (is_last) output_ended_ = true;
  if (has_left) {
    Report(std::move(accepted), is_accepted);
  } else {
    writes_.push_back(std::move(accepted));
  }
  return absl::OkStatus();
}

void StreamMessages::HalfClose() {
  if (std::exchange(output_ended_, true)) return;
  connection_->session()->output().SendHalfClose(stream_);
}

void StreamMessages::Read(Received received) {
  session::StreamInput& input = connection_->session()->input();
  if (!unread_.empty()) {
    Give(std::move(received), unread_.pop_front());
    input.Consumed(stream_);
  } else if (input_ended_) {
    Give(std::move(received), absl::nullopt);
  } else {
    reads_.push_back(std::move(received));
    input.WantMessage(stream_);
  }
}

absl::Status StreamMessages::OnMessage(const memory::Payload& message,
                                       bool compressed) {
  if (input_ended_ || compressed) {
    return absl::InternalError("the peer sent a malformed message");
  }
  absl::StatusOr<memory::Payload> owned = Owned(message);
  if (!owned.ok()) return owned.status();
  if (reads_.empty()) {
    unread_.push_back(*std::move(owned));
    return absl::OkStatus();
  }
  Give(reads_.pop_front(), *std::move(owned));
  session::StreamInput& input = connection_->session()->input();
  input.Consumed(stream_);
  if (!reads_.empty()) input.WantMessage(stream_);
  return absl::OkStatus();
}

void StreamMessages::OnSendAccepted() {
  if (!writes_.empty()) Report(writes_.pop_front(), true);
}

void StreamMessages::OnInputEnd() {
  input_ended_ = true;
  while (!reads_.empty()) Give(reads_.pop_front(), absl::nullopt);
}

void StreamMessages::End() {
  OnInputEnd();
  output_ended_ = true;
  while (!writes_.empty()) Report(writes_.pop_front(), false);
}

void StreamMessages::Drop() {
  // Releases the messages later, without locks.
  connection_->RunLater([unread = std::move(unread_)] {});
  unread_.clear();
  End();
}

void StreamMessages::Give(Received received,
                          absl::optional<memory::Payload> message) {
  connection_->RunLater(
      [received = std::move(received), message = std::move(message)]() mutable {
        received(std::move(message));
      });
}

void StreamMessages::Report(Accepted accepted, bool is_accepted) {
  if (accepted == nullptr) return;
  connection_->RunLater(
      [accepted = std::move(accepted), is_accepted] { accepted(is_accepted); });
}

}  // namespace rpc
}  // namespace penstock
