#include "transport/connection/keepalive.h"

#include <algorithm>
#include <utility>

namespace penstock {
namespace connection {
namespace {

// The shortest interval between pings of a connection without calls. RFC 1122
// requires this interval for TCP's keepalive.
constexpr absl::Duration kIdleInterval = absl::Hours(2);

// The looks within a timeout. Each look notices whether this process runs.
constexpr int kLooks = 8;
// The minimum interval of looks. Longer than the usual delays of a thread.
constexpr absl::Duration kLeastInterval = absl::Milliseconds(100);

}  // namespace

void Keepalive::OnReceived(absl::Time now) {
  last_heard_ = std::max(last_heard_, now);
  pinged_ = absl::InfiniteFuture();
}

absl::Time Keepalive::NextTimer() const {
  if (!enabled()) return absl::InfiniteFuture();
  return pinged_ < absl::InfiniteFuture() ? pinged_ + config_.timeout
                                          : last_heard_ + config_.time;
}

absl::Duration Keepalive::LookInterval() const {
  return std::max(config_.timeout / kLooks, kLeastInterval);
}

absl::Time Keepalive::NextLook(absl::Time now) {
  const absl::Duration most = pinged_ < absl::InfiniteFuture()
                                  ? std::min(config_.time, LookInterval())
                                  : config_.time;
  look_ = std::min(NextTimer(), now + most);
  return look_;
}

Keepalive::Action Keepalive::OnTimer(absl::Time now, bool has_calls) {
  const absl::Duration late =
      now - std::exchange(look_, absl::InfiniteFuture());
  if (pinged_ < absl::InfiniteFuture() && late > absl::ZeroDuration()) {
    pinged_ = late > LookInterval() ? now : pinged_ + late;
  }
  if (now < NextTimer()) return Action::kNone;
  if (pinged_ < absl::InfiniteFuture()) return Action::kPeerIsDead;
  const bool exhausted = config_.max_pings_without_data > 0 &&
                         pings_without_data_ >= config_.max_pings_without_data;
  if (exhausted || !(has_calls || config_.permit_without_calls)) {
    last_heard_ = now;
    return Action::kNone;
  }
  ++pings_without_data_;
  pinged_ = now;
  return Action::kPing;
}

bool PingPolice::OnPing(absl::Time now, bool has_calls) {
  const absl::Duration interval = has_calls || config_.permit_without_calls
                                      ? config_.min_interval
                                      : kIdleInterval;
  const bool too_early = now < last_ping_ + interval;
  last_ping_ = now;
  if (!too_early) return false;
  return ++strikes_ > config_.max_strikes && config_.max_strikes > 0;
}

void PingPolice::OnDataSent() {
  last_ping_ = absl::InfinitePast();
  strikes_ = 0;
}

}  // namespace connection
}  // namespace penstock
