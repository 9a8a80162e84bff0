// Connects a channel to one address: TCP, then security, then the negotiation.

#ifndef PENSTOCK_TRANSPORT_GRPC_HANDSHAKE_CONNECTOR_H_
#define PENSTOCK_TRANSPORT_GRPC_HANDSHAKE_CONNECTOR_H_

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "src/core/ext/filters/client_channel/connector.h"
#include "src/core/lib/gprpp/sync.h"
#include "src/core/lib/transport/handshaker.h"
#include "transport/grpc/handshake/http2_start.h"
#include "transport/grpc/internal/grpc_abi.h"
#include "transport/grpc/polling/socket_users.h"
#include "transport/settings/settings.h"

namespace penstock {
namespace core {

// The connector of one gRPC subchannel, for one attempt at a time. gRPC remains
// responsible for backoff, load balancing and retries. An attempt succeeds when
// the peer has proven that it speaks Penstock or HTTP/2. Thread-safe.
class Connector : public grpc_core::SubchannelConnector {
 public:
  explicit Connector(Settings settings) : settings_(std::move(settings)) {}

  void Connect(const Args& args, Result* result, grpc_closure* notify) override;
  void Shutdown(grpc_error_handle error) override;

 private:
  static void OnHandshakeDone(void* arg, grpc_error_handle error);
  void DeliverLocked(grpc_core::HandshakerArgs* args);
  void StartHttp2Locked(grpc_core::HandshakerArgs* args);
  void OnHttp2(absl::StatusOr<grpc_transport*> transport,
               const std::string& peer);
  void NotifyLocked(const grpc_error_handle& error);
  static void Discard(grpc_core::HandshakerArgs* args, grpc_error_handle why);

  const Settings settings_;
  const SocketUser socket_user_;
  grpc_core::Mutex mu_;
  bool shut_down_ = false;
  Args args_;
  Result* result_ = nullptr;
  grpc_closure* notify_ = nullptr;
  grpc_core::RefCountedPtr<grpc_core::HandshakeManager> handshakes_;
  grpc_core::RefCountedPtr<Http2Start> http2_;
};

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_HANDSHAKE_CONNECTOR_H_
