// The calls and streams of a server, as their handlers see them.

#include <functional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "transport/memory/bytes.h"
#include "transport/rpc/call.h"
#include "transport/rpc/server.h"
#include "transport/rpc/server_call.h"

namespace penstock {
namespace rpc {

IncomingCall::~IncomingCall() {
  call_->Respond(
      absl::InternalError("the handler dropped the call without an answer"));
}

const Request& IncomingCall::request() const { return call_->request(); }
memory::Payload IncomingCall::TakePayload() { return call_->TakePayload(); }
const std::string& IncomingCall::peer() const { return call_->peer(); }

void IncomingCall::Respond(absl::StatusOr<Response> response) {
  call_->Respond(std::move(response));
}

void IncomingCall::OnCancel(std::function<void()> cancelled) {
  call_->OnCancel(std::move(cancelled));
}

IncomingStream::~IncomingStream() {
  call_->EndStream(
      {absl::InternalError("the handler dropped the stream without an end"),
       ""});
}

const Request& IncomingStream::request() const { return call_->request(); }

const std::string& IncomingStream::peer() const { return call_->peer(); }

void IncomingStream::SendMetadata(absl::string_view metadata) {
  call_->SendMetadata(metadata);
}

void IncomingStream::Write(const memory::Payload& message, Accepted accepted) {
  call_->Write(message, std::move(accepted));
}

void IncomingStream::Read(Received received) {
  call_->Read(std::move(received));
}

void IncomingStream::Finish(End end) { call_->EndStream(std::move(end)); }

void IncomingStream::OnCancel(std::function<void()> cancelled) {
  call_->OnCancel(std::move(cancelled));
}

}  // namespace rpc
}  // namespace penstock
