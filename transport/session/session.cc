// Lifecycle, paths, and who is told about them.

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
      sender_(lifeline_.get()),
      reader_(lifeline_.get(), config_.read_budget, this) {}

Session::~Session() = default;

void Session::Start() {
  lifeline_->Start(&lifeline_events_);
  wire::Hello hello;
  hello.token = config_.token;
  hello.stream_window = config_.stream_window;
  hello.offers = config_.offers;
  wire::FrameHeader header;
  header.type = wire::FrameType::kHello;
  sender_.AddControl(header, wire::EncodeHello(hello), 0);
}

absl::Status Session::OnHello(absl::Span<const uint8_t> payload) {
  if (state_ != State::kGreeting) {
    return absl::InvalidArgumentError("the peer said hello twice");
  }
  absl::StatusOr<wire::Hello> hello = wire::ParseHello(payload);
  if (!hello.ok()) return hello.status();
  state_ = State::kOpen;
  peer_window_ = hello->stream_window;
  negotiator_.OnPeerOffers(std::move(hello->offers));
  if (config_.is_client) {
    peer_token_ = std::move(hello->token);
    TryNextPath();
  } else if (fast_ != nullptr) {  // it was quicker than the hello
    OfferFastPath();
  } else if (!negotiator_.HasCommonFabric()) {
    Report();
  }
  return absl::OkStatus();
}

void Session::TryNextPath() {
  absl::optional<wire::FabricOffer> offer = negotiator_.Next();
  if (offer.has_value()) {
    events_->OnConnectWanted(offer->fabric, offer->data, peer_token_);
    return;
  }
  // The acceptor waits for a path: tell it that none will come.
  if (negotiator_.HasCommonFabric()) {
    wire::FrameHeader header;
    header.type = wire::FrameType::kPathLost;
    sender_.AddControl(header, negotiator_.Reason(), order_.delivered());
  }
  Report();
}

void Session::AddFastPath(const std::string& fabric,
                          std::shared_ptr<fabric::Endpoint> path) {
  if (closed() || fast_ != nullptr || reported_) return;  // too late
  fast_ = std::move(path);
  fabric_ = fabric;
  fast_->Start(&fast_events_);
  reader_.UseFastPath(fast_.get());
  if (state_ == State::kOpen) OfferFastPath();
}

// The peer may send over the path once it knows: so not before its hello is
// here, which travels by another path than what it would send.
void Session::OfferFastPath() {
  wire::FrameHeader header;
  header.type = wire::FrameType::kPathReady;
  sender_.AddControl(header, fabric_, order_.delivered());
  if (peer_ready_) UseFastPath();
}

void Session::FastPathFailed(const absl::Status& cause) {
  if (closed() || fast_ != nullptr || reported_) return;
  negotiator_.OnFailure(std::string(cause.message()));
  if (config_.is_client) {
    TryNextPath();
  } else {
    Report();
  }
}

void Session::OnPathReady() {
  peer_ready_ = true;
  if (fast_ != nullptr) UseFastPath();
}

void Session::UseFastPath() {
  using_fast_ = true;
  sender_.UseFastPath(fast_.get());
  Report();
}

void Session::LoseFastPath(const absl::Status& cause, bool tell_peer) {
  peer_ready_ = false;
  using_fast_ = false;
  if (fast_ == nullptr) return;
  for (auto& entry : announced_) entry.second.fast_path = nullptr;
  reader_.LoseFastPath();
  sender_.LoseFastPath();
  lost_paths_.push_back(std::move(fast_));
  fast_ = nullptr;
  if (tell_peer) {
    wire::FrameHeader header;
    header.type = wire::FrameType::kPathLost;
    sender_.AddControl(header, cause.message(), order_.delivered());
  }
  negotiator_.OnFailure(absl::StrCat("lost: ", cause.message()));
  Report();
}

PathDescription Session::DescribePath() const {
  if (using_fast_) return PathDescription{fabric_, fast_->Describe(), ""};
  return PathDescription{"tcp", lifeline_->Describe(), negotiator_.Reason()};
}

void Session::Report() {
  reported_ = true;
  events_->OnPathChosen(DescribePath());
}

bool Session::Poll() {
  if (fast_ == nullptr || in_input_ || closed()) return false;
  in_input_ = true;
  std::shared_ptr<fabric::Endpoint> path = fast_;
  const bool any = path->Poll();
  in_input_ = false;
  return any;
}

// What the peer sent before it went may still be in the fast path: replies, for
// one. The bound is for a peer that goes on sending there.
void Session::OnLifelineBroken(const absl::Status& cause) {
  constexpr int kMaxPolls = 1024;
  for (int i = 0; i < kMaxPolls && Poll(); ++i) {
  }
  Close(cause);
}

void Session::Flush() {
  if (closed()) return lost_paths_.clear();
  sender_.Flush();
  AcknowledgeIfDue();
  // For what was sent, and for a peer that waits for what was received.
  if (fast_ != nullptr && fast_->TakeDoorbellRequest()) {
    lifeline_->RingDoorbell();
  }
  lost_paths_.clear();
}

void Session::Close(const absl::Status& cause) {
  if (closed()) return;
  sender_.Flush();  // a reset or trailers may wait
  state_ = State::kClosed;
  using_fast_ = false;
  sender_.LoseFastPath();
  reader_.LoseFastPath();
  for (auto& entry : announced_) entry.second.fast_path = nullptr;
  if (fast_ != nullptr) lost_paths_.push_back(std::move(fast_));
  fast_ = nullptr;
  const absl::Status status = absl::UnavailableError(
      absl::StrCat("Penstock session closed: ", cause.message()));
  while (!streams_.empty()) {
    std::unique_ptr<Stream> stream = std::move(streams_.begin()->second);
    streams_.erase(streams_.begin());
    if (stream->events != nullptr) stream->events->OnReset(status, false);
  }
  announced_.clear();
  events_->OnClosed(cause);
}

Stream* Session::FindStream(uint32_t stream) {
  auto it = streams_.find(stream);
  if (it == streams_.end() || it->second->draining) return nullptr;
  return it->second.get();
}

void Session::PathEvents::OnMessage(absl::Span<const uint8_t> message) {
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
    session_->LoseFastPath(cause, /*tell_peer=*/true);
  }
}

}  // namespace session
}  // namespace penstock
