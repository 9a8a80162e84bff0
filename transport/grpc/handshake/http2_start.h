// Starts stock HTTP/2 on a new connection. Waits until the peer has proven that
// it speaks HTTP/2.

#ifndef PENSTOCK_TRANSPORT_GRPC_HANDSHAKE_HTTP2_START_H_
#define PENSTOCK_TRANSPORT_GRPC_HANDSHAKE_HTTP2_START_H_

#include <functional>

#include "absl/status/statusor.h"
#include "src/core/ext/filters/client_channel/connector.h"
#include "src/core/lib/channel/channelz.h"
#include "src/core/lib/gprpp/ref_counted.h"
#include "src/core/lib/gprpp/ref_counted_ptr.h"
#include "src/core/lib/gprpp/sync.h"
#include "src/core/lib/transport/handshaker.h"
#include "src/core/lib/transport/transport_fwd.h"
#include "transport/connection/executor.h"
#include "transport/grpc/internal/grpc_abi.h"

namespace penstock {
namespace core {

// One attempt to start HTTP/2. Succeeds when the peer's SETTINGS arrive, as in
// gRPC's own connector, because a server of any protocol may accept the
// connection. Thread-safe. Call all functions in an ExecCtx.
class Http2Start : public grpc_core::RefCounted<Http2Start> {
 public:
  // Receives the result, once, from an ExecCtx, without locks. The
  // function takes ownership of the transport.
  using Done = std::function<void(absl::StatusOr<grpc_transport*>)>;

  // Starts an attempt. Takes the endpoint and the read buffer of `args`.
  // `connect` has the deadline, and the pollsets that poll until the result.
  static grpc_core::RefCountedPtr<Http2Start> Begin(
      grpc_core::HandshakerArgs* args,
      const grpc_core::SubchannelConnector::Args& connect, Done done);

  // Ends the attempt with `why`. Does nothing after the end.
  void Shutdown(const grpc_error_handle& why);

 private:
  Http2Start(grpc_core::HandshakerArgs* args,
             const grpc_core::SubchannelConnector::Args& connect, Done done);

  static void OnSettings(void* self, grpc_error_handle error);
  void OnTimer(bool is_due);
  void FinishLocked(const grpc_error_handle& error);

  grpc_endpoint* const endpoint_;  // owned by the transport
  grpc_pollset_set* const interested_parties_;
  grpc_core::Mutex mu_;
  grpc_transport* transport_;  // null once finished
  Done done_;
  connection::Executor::Id timer_ = 0;
  grpc_closure on_settings_;
};

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_HANDSHAKE_HTTP2_START_H_
