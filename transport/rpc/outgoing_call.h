// An entry in a client's table of calls: a unary call, or a stream.

#ifndef PENSTOCK_TRANSPORT_RPC_OUTGOING_CALL_H_
#define PENSTOCK_TRANSPORT_RPC_OUTGOING_CALL_H_

#include <functional>

#include "absl/status/status.h"
#include "transport/rpc/call_connection.h"
#include "transport/session/events.h"

namespace penstock {
namespace rpc {

// A call or a stream of a client. Call all functions under the connection's
// lock, or under the client's lock while there is no connection.
class OutgoingCall : public session::StreamEvents {
 public:
  using Unsent = std::function<void(const absl::Status&)>;

  // Sends the call, unless the call was started before.
  virtual void Start(CallConnection* connection) = 0;
  // Ends an open call with `why` on both sides.
  virtual void Cancel(const absl::Status& why) = 0;
  // Ends a call that was never started. Returns a function that reports the
  // call's failure, for the caller to run. Returns null if the call was
  // started, or has reported its end.
  virtual Unsent TakeUnsent() = 0;
};

}  // namespace rpc
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_RPC_OUTGOING_CALL_H_
