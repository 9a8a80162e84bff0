// Keepalive of a transport, with the times of gRPC's clock.

#ifndef PENSTOCK_TRANSPORT_GRPC_LIVENESS_H_
#define PENSTOCK_TRANSPORT_GRPC_LIVENESS_H_

#include "src/core/lib/gprpp/time.h"
#include "transport/grpc/channel_limits.h"
#include "transport/grpc/grpc_abi.h"
#include "transport/session/session.h"

namespace penstock {
namespace core {

// Call everything under the transport's lock, in an ExecCtx.
class Liveness {
 public:
  explicit Liveness(const ChannelLimits& limits);

  // Call after each use of the session. Notices what the session has received
  // and sent since the last call.
  void Observe(const session::Counters& counters) {
    if (counters.inputs != inputs_) OnInputs(counters.inputs);
    if (counters.stream_frames_sent != stream_frames_sent_) {
      OnFramesSent(counters.stream_frames_sent);
    }
  }
  // Call for each ping from the client. Returns false if it pings too often.
  bool MayPing(bool has_calls);

  bool enabled() const { return keepalive_.enabled(); }
  // Returns the time until the next OnTimer() is due.
  grpc_core::Duration UntilTimer() const;
  // Returns what to do now.
  connection::Keepalive::Action OnTimer(bool has_calls);

 private:
  void OnInputs(uint64_t inputs);
  void OnFramesSent(uint64_t frames);

  connection::Keepalive keepalive_;
  connection::PingPolice police_;
  uint64_t inputs_ = 0;
  uint64_t stream_frames_sent_ = 0;
};

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_LIVENESS_H_
