#include "tests/transport/session/simulated_call.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/transport/session/session_test_util.h"

namespace penstock {
namespace session {
namespace {

uint32_t SeedOf(uint32_t stream, bool from_client, size_t index) {
  return stream * 1000 + (from_client ? 500 : 0) + static_cast<uint32_t>(index);
}

}  // namespace

SimulatedCall::SimulatedCall(CallWorld* world, CallPlan* plan, Session* session,
                             bool is_client)
    : world_(world), plan_(plan), session_(session), is_client_(is_client) {}

void SimulatedCall::Expect(bool holds, const std::string& what) {
  if (!holds) world_->errors.push_back(what + ": " + Describe());
}

std::string SimulatedCall::Describe() const {
  return absl::StrCat(
      is_client_ ? "client" : "server", " of ", plan_->stream, " has sent ",
      sent_, " of ", outgoing().size(), " and received ", received_, " of ",
      incoming().size(), waits_for_window_ ? ", waits for window" : "",
      receives_ ? ", waits for message" : "", ended_ ? ", ended" : "");
}

void SimulatedCall::OnHeaders(absl::string_view metadata) {
  Expect(!ended_ && !headers_received_ && received_ == 0, "late headers");
  Expect(metadata == "headers", "wrong headers");
  headers_received_ = true;
}

void SimulatedCall::CheckMessage(const memory::Payload& message,
                                 bool compressed) {
  Expect(!ended_ && headers_received_ && !read_closed_, "message at that time");
  Expect(received_ < incoming().size(), "message too many");
  if (received_ >= incoming().size()) return;
  const uint32_t seed = SeedOf(plan_->stream, !is_client_, received_);
  Expect(ToString(message) == Letters(incoming()[received_], seed),
         "wrong message");
  Expect(compressed == (seed % 2 == 1), "wrong flag");
}

void SimulatedCall::OnMessage(const memory::Payload& message, bool compressed) {
  CheckMessage(message, compressed);
  ++received_;
  queue_.push_back(Owned(message));
  if (receives_) TakeOldest();
}

void SimulatedCall::TakeOldest() {
  receives_ = false;
  if (Roll(3) == 0) held_.push_back(queue_.front());
  queue_.pop_front();
  session_->input().Consumed(plan_->stream);
}

void SimulatedCall::OnMessageTooLarge(uint64_t bytes) {
  Expect(!ended_ && received_ < incoming().size() &&
             incoming()[received_] == bytes,
         "refused message");
  GiveUp();
}

void SimulatedCall::OnHalfClose() {
  Expect(!is_client_ && !ended_ && !read_closed_, "half close at that time");
  Expect(received_ == incoming().size(), "half close too early");
  read_closed_ = true;
}

void SimulatedCall::OnTrailers(absl::string_view metadata) {
  Expect(is_client_ && !ended_, "trailers at that time");
  if (plan_->aborted) {
    Expect(metadata == "aborted", "wrong trailers");
  } else {
    Expect(metadata == "done" && received_ == incoming().size(),
           "trailers too early");
  }
  session_->output().DropUnsent(plan_->stream);
  session_->streams().Detach(plan_->stream);
  End();
}

void SimulatedCall::OnReset(const absl::Status& status, bool from_peer) {
  Expect(!ended_, "reset at that time");
  if (!plan_->session_lost) {
    Expect(plan_->cancelled && !is_client_ && from_peer, "reset for no reason");
    Expect(absl::IsCancelled(status), "wrong reset");
  }
  End();
}

void SimulatedCall::OnSendAccepted() {
  Expect(!ended_ && waits_for_window_, "accepted what did not wait");
  waits_for_window_ = false;
  if (is_client_ || !sent_all_) return;
  session_->streams().Detach(plan_->stream);
  End();
}

void SimulatedCall::End() {
  ended_ = true;
  queue_.clear();
}

// Cancels the call as transport/grpc does. A client's reset overtakes its
// frames, while a server's trailers follow its frames.
void SimulatedCall::GiveUp() {
  if (is_client_) {
    plan_->cancelled = true;
    session_->output().SendReset(plan_->stream,
                                 absl::CancelledError("cancelled"));
  } else {
    plan_->aborted = true;
    session_->output().DropUnsent(plan_->stream);
    session_->output().SendTrailers(plan_->stream, "aborted");
  }
  session_->streams().Detach(plan_->stream);
  End();
}

bool SimulatedCall::MayEnd() const {
  return is_client_ || read_closed_ || plan_->ends_early;
}

bool SimulatedCall::Send() {
  if (!headers_sent_) {
    session_->output().SendHeaders(plan_->stream, "headers");
    headers_sent_ = true;
    return true;
  }
  if (waits_for_window_ || sent_all_) return false;
  if (sent_ < outgoing().size()) {
    const uint32_t seed = SeedOf(plan_->stream, is_client_, sent_);
    memory::Payload payload = ToPayload(Letters(outgoing()[sent_], seed));
    for (const memory::Bytes& piece : payload.pieces()) {
      world_->payloads.push_back(piece.owner);
    }
    ++sent_;
    waits_for_window_ = !session_->output().SendMessage(
        plan_->stream, std::move(payload), seed % 2 == 1);
    // Returns without waiting for the message. The next action may come
    // immediately, and then waits behind the message.
    if (sent_ < outgoing().size() || Roll(2) == 0) return true;
  }
  if (!MayEnd()) return false;
  sent_all_ = true;
  if (is_client_) {
    session_->output().SendHalfClose(plan_->stream);
    return true;
  }
  session_->output().SendTrailers(plan_->stream, "done");
  if (waits_for_window_) return true;
  session_->streams().Detach(plan_->stream);
  End();
  return true;
}

bool SimulatedCall::PostReceive() {
  if (receives_) return false;
  receives_ = true;
  if (queue_.empty()) {
    session_->input().WantMessage(plan_->stream);
  } else {
    TakeOldest();
  }
  return true;
}

bool SimulatedCall::Act(bool hurry) {
  if (ended_) return false;
  if (!headers_sent_ && is_client_) return Send();
  const int chance = is_client_ ? plan_->client_cancels : plan_->server_aborts;
  if (!hurry && headers_sent_ && Roll(100) < static_cast<uint32_t>(chance)) {
    GiveUp();
    return true;
  }
  if (Roll(2) == 0) return Send() || (!ended_ && PostReceive());
  return PostReceive() || Send();
}

}  // namespace session
}  // namespace penstock
