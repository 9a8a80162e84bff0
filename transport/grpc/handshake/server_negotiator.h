// The server's side of the negotiation. Checks if the client offers Penstock,
// and answers.

#ifndef PENSTOCK_TRANSPORT_GRPC_HANDSHAKE_SERVER_NEGOTIATOR_H_
#define PENSTOCK_TRANSPORT_GRPC_HANDSHAKE_SERVER_NEGOTIATOR_H_

#include "src/core/lib/surface/server.h"
#include "transport/grpc/handshake/negotiator.h"
#include "transport/grpc/internal/grpc_abi.h"
#include "transport/settings/settings.h"

namespace penstock {
namespace core {

// Gives connections of clients that offer Penstock to a transport, and further
// sockets to their sessions. Leaves other connections to HTTP/2 with all
// received bytes. With Policy::kRequire, refuses them instead.
class ServerNegotiator : public Negotiator {
 public:
  // Makes the negotiator of one handshake. `server` owns the listener that runs
  // this handshake. gRPC keeps the server alive until its handshakes have
  // finished.
  ServerNegotiator(Settings settings, grpc_core::Server* server)
      : settings_(std::move(settings)), server_(server) {}
  const char* name() const override { return "penstock"; }

 private:
  void BeginLocked() override { OnReadLocked(); }
  void OnReadLocked() override;
  void OnWrittenLocked() override;
  void RefuseHttp2Locked();
  void AnswerFloodLocked();
  void SetUp(Transport* transport, const grpc_core::ChannelArgs& channel_args);

  const Settings settings_;
  grpc_core::Server* const server_;
  uint8_t version_ = 0;  // the version that both sides speak
  size_t consumed_ = 0;
  paths::HalfOpen::Slot half_open_;
};

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_HANDSHAKE_SERVER_NEGOTIATOR_H_
