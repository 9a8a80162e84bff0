#include "transport/grpc/liveness.h"

#include <algorithm>

#include "transport/grpc/timer.h"

namespace penstock {
namespace core {

Liveness::Liveness(const ChannelLimits& limits)
    : keepalive_(limits.keepalive, Now()), police_(limits.ping_police) {}

void Liveness::OnInputs(uint64_t inputs) {
  inputs_ = inputs;
  if (enabled()) keepalive_.OnReceived(Now());
}

void Liveness::OnFramesSent(uint64_t frames) {
  stream_frames_sent_ = frames;
  keepalive_.OnDataSent();
  police_.OnDataSent();
}

bool Liveness::MayPing(bool has_calls) {
  return !police_.OnPing(Now(), has_calls);
}

grpc_core::Duration Liveness::UntilTimer() const {
  const absl::Time now = Now();
  return grpc_core::Duration::Milliseconds(
      absl::ToInt64Milliseconds(keepalive_.NextLook(now) - now) + 1);
}

connection::Keepalive::Action Liveness::OnTimer(bool has_calls) {
  return keepalive_.OnTimer(Now(), has_calls);
}

}  // namespace core
}  // namespace penstock
