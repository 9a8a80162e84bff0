// The pings that gRPC's channels send.

#ifndef PENSTOCK_TRANSPORT_GRPC_PINGS_H_
#define PENSTOCK_TRANSPORT_GRPC_PINGS_H_

#include <cstdint>
#include <unordered_map>

#include "absl/status/status.h"
#include "src/core/lib/iomgr/closure.h"
#include "transport/grpc/internal/grpc_abi.h"
#include "transport/session/session.h"

namespace penstock {
namespace core {

// The unanswered pings of a transport. Call all functions under the transport's
// lock, in an ExecCtx.
class Pings {
 public:
  // Refers to `session`, which must outlive this object.
  explicit Pings(session::Session* session) : session_(session) {}

  // Sends a ping. Runs `on_ack` once: when the answer arrives, or when the
  // session ends.
  void Send(grpc_closure* on_ack);
  // Handles an answer. Ignores answers to other pings.
  void OnPong(uint64_t cookie);
  // Fails all pings with `cause`.
  void End(const absl::Status& cause);

 private:
  session::Session* const session_;
  uint64_t next_ = 1;
  std::unordered_map<uint64_t, grpc_closure*> pings_;
};

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_PINGS_H_
