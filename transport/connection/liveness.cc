#include "transport/connection/liveness.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace penstock {
namespace connection {
namespace {

// The cookie of keepalive's pings. The cookies of gRPC's pings begin at 1.
constexpr uint64_t kKeepalivePing = 0;

}  // namespace

Liveness::Liveness(const Config& config, session::Session* session, Host* host,
                   std::function<bool()> has_calls)
    : session_(session),
      host_(host),
      has_calls_(std::move(has_calls)),
      timeout_(config.keepalive.timeout),
      keepalive_(config.keepalive, host->executor()->Now()),
      police_(config.ping_police),
      heartbeat_(absl::Milliseconds(config.settings.heartbeat_ms),
                 config.keepalive),
      keepalive_timer_(host),
      heartbeat_timer_(host) {}

void Liveness::Start(std::function<void()> pinged) {
  pinged_ = std::move(pinged);
  StartKeepaliveTimer();
}

void Liveness::End() {
  keepalive_timer_.Cancel();
  heartbeat_timer_.Cancel();
}

void Liveness::StartKeepaliveTimer() {
  if (!keepalive_.enabled()) return;
  const absl::Time now = Now();
  keepalive_timer_.Start(keepalive_.NextLook(now) - now,
                         [this] { OnKeepaliveTimer(); });
}

void Liveness::OnKeepaliveTimer() {
  switch (keepalive_.OnTimer(Now(), has_calls_())) {
    case Keepalive::Action::kPeerIsDead:
      return session_->Close(absl::UnavailableError(absl::StrCat(
          "keepalive watchdog timeout: the peer did not answer within ",
          absl::FormatDuration(timeout_))));
    case Keepalive::Action::kPing:
      session_->SendPing(kKeepalivePing);
      if (pinged_ != nullptr) pinged_();
      break;
    case Keepalive::Action::kNone:
      break;
  }
  StartKeepaliveTimer();
}

void Liveness::Beat() {
  switch (heartbeat_.OnUse(session_->counters())) {
    case Heartbeat::Action::kNone:
      return;
    case Heartbeat::Action::kBeat:
      session_->path().RingLifeline();
      break;
    case Heartbeat::Action::kStartTimer:
      break;
  }
  StartHeartbeatTimer();
}

void Liveness::StartHeartbeatTimer() {
  heartbeat_timer_.Start(heartbeat_.interval(), [this] { OnHeartbeatTimer(); });
}

void Liveness::OnHeartbeatTimer() {
  if (!session_->path().in_use()) return;
  if (!heartbeat_.OnTimer(session_->counters())) return;
  session_->path().RingLifeline();
  StartHeartbeatTimer();
}

}  // namespace connection
}  // namespace penstock
