// Lifecycle.

#include "transport/session/session.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace penstock {
namespace session {

Session::Session(Config config, std::unique_ptr<fabric::Endpoint> lifeline,
                 SessionEvents* events)
    : config_(std::move(config)),
      events_(events),
      lifeline_events_(this, true),
      fast_events_(this, false),
      lifeline_(std::move(lifeline)),
      negotiator_(config_.offers),
      budget_(config_.budget),
      sender_(lifeline_.get(), &buffers_, &budget_),
      send_meter_(config_.tuning, lifeline_->capabilities()),
      reassembler_(config_.max_metadata_bytes),
      reader_(lifeline_.get(), config_.read_budget, config_.load_in_place, this,
              config_.tuning),
      exposures_(lifeline_.get(), &budget_),
      max_streams_(config_.max_streams) {}

Session::~Session() = default;

void Session::Start() {
  lifeline_->Start(&lifeline_events_);
  wire::Hello hello;
  hello.token = config_.token;
  hello.stream_window = config_.stream_window;
  hello.max_streams = config_.max_streams;
  hello.offers = config_.offers;
  wire::FrameHeader header;
  header.type = wire::FrameType::kHello;
  sender_.AddControl(header, wire::EncodeHello(hello), 0);
  started_ = true;
}

absl::Status Session::OnHello(absl::Span<const uint8_t> payload) {
  if (state_ != State::kGreeting) {
    return absl::InvalidArgumentError("the peer said hello twice");
  }
  absl::StatusOr<wire::Hello> hello = wire::ParseHello(payload);
  if (!hello.ok()) return hello.status();
  state_ = State::kOpen;
  peer_window_ = hello->stream_window;
  if (config_.is_client) max_streams_ = hello->max_streams;
  negotiator_.OnPeerOffers(std::move(hello->offers));
  if (config_.is_client) {
    peer_token_ = std::move(hello->token);
    TryNextPath();
  } else if (fast_ != nullptr) {  // it was quicker than the hello
    Apply(handshake_.OnLocalReady());
  } else if (!negotiator_.HasCommonFabric()) {
    Apply(handshake_.OnNothingToTry());
  }
  return absl::OkStatus();
}

bool Session::Poll() {
  if (fast_ == nullptr || in_input_ || closed()) return false;
  in_input_ = true;
  std::shared_ptr<fabric::Endpoint> path = fast_;
  const bool any = path->Poll();
  in_input_ = false;
  return any;
}

void Session::DrainFastPath() {
  // For a peer that goes on sending there.
  constexpr int kMaxPolls = 1024;
  for (int i = 0; i < kMaxPolls && Poll(); ++i) {
  }
}

void Session::OnLifelineBroken(const absl::Status& cause) {
  DrainFastPath();
  Close(cause);
}

void Session::Flush() {
  if (closed()) return lost_paths_.clear();
  if (!started_) return;
  const bool sends = sender_.has_output() || !congested_.empty();
  if (sends) {
    lifeline_->BeginBatch();
    sender_.Flush();
    SendCongested();
  }
  AcknowledgeIfDue();
  // For what was sent, and for a peer that waits for what was received.
  if (fast_ != nullptr && fast_->TakeDoorbellRequest()) {
    lifeline_->RingDoorbell();
  }
  if (sends) lifeline_->EndBatch();
  lost_paths_.clear();
}

void Session::Close(const absl::Status& cause) {
  if (closed()) return;
  if (started_) sender_.Flush();  // a reset or trailers may wait
  state_ = State::kClosed;
  DropFastPath();
  const absl::Status status = absl::UnavailableError(
      absl::StrCat("Penstock session closed: ", cause.message()));
  while (!streams_.empty()) {
    const uint32_t id = streams_.first_id();
    StreamEvents* const events = streams_.Find(id)->events;
    streams_.Erase(id);
    if (events != nullptr) events->OnReset(status, false);
  }
  exposures_.Clear();
  events_->OnClosed(cause);
}

Stream* Session::FindStream(uint32_t stream) {
  Stream* const found = streams_.Find(stream);
  return found == nullptr || found->draining ? nullptr : found;
}

void Session::PathEvents::OnMessage(absl::Span<const uint8_t> message) {
  // What follows nonsense, until the path's Poll() returns.
  if (!is_lifeline_ && session_->fast_ == nullptr) return;
  session_->OnMessage(is_lifeline_, message);
}

void Session::PathEvents::OnReadDone(uint64_t cookie,
                                     const absl::Status& status) {
  session_->reader_.OnReadDone(cookie, status);
}

void Session::PathEvents::OnBroken(const absl::Status& cause) {
  if (is_lifeline_) {
    session_->OnLifelineBroken(cause);
  } else {
    session_->LoseFastPath(cause);
  }
}

}  // namespace session
}  // namespace penstock
