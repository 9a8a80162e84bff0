// The receiving half of a gRPC connection.

#ifndef PENSTOCK_TRANSPORT_GRPC_LIFELINE_INPUT_H_
#define PENSTOCK_TRANSPORT_GRPC_LIFELINE_INPUT_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "transport/fabric/tcp/endpoint.h"
#include "transport/grpc/endpoint_stream.h"
#include "transport/grpc/input_poller.h"
#include "transport/session/session.h"

namespace penstock {
namespace core {

// Passes the bytes of a stream to the session's lifeline. Receives from the
// socket itself over plain TCP. Once the connection is busy, waiting threads
// then poll the socket, too. Over TLS, gRPC's endpoint reads.
//
// Does not read while the peer leaves this side's answers unread, because
// further requests would cause further answers. gRPC's HTTP/2 stops reading for
// the same reason.
//
// Thread-compatible. Call in an ExecCtx, under the connection's lock.
class LifelineInput {
 public:
  // The arguments must outlive this object.
  LifelineInput(EndpointStream* stream, fabric::tcp::Endpoint* lifeline,
                session::Session* session)
      : stream_(stream), lifeline_(lifeline), session_(session) {}

  // Passes on the bytes in the read buffer, and lets reads begin.
  void Start();
  // Handles the end of a read. Returns an error if the connection has ended.
  absl::Status OnRead();
  // Returns true if StartPolling() must be called: input has come to a busy
  // connection, no thread polls for more, there is no fast path, and this call
  // has taken a place for the socket.
  bool TakePlaceToPoll();
  // Lets waiting threads call `poll`, which must call Poll() under the lock.
  void StartPolling(InputPoller::Receive poll);
  // Receives a bounded amount of input. Returns true if there was any. Returns
  // an error if the connection has ended.
  absl::StatusOr<bool> Poll();
  // Begins the next read if the session reads. Ends the polling if the session
  // does not read, or has a fast path.
  // Call at the end of each section.
  void ReadOn();

 private:
  void DeliverReadBuffer();
  absl::StatusOr<bool> Receive(size_t most_bytes, bool until_empty);

  EndpointStream* const stream_;
  fabric::tcp::Endpoint* const lifeline_;
  session::Session* const session_;
  InputPoller poller_;
  int reads_ = 0;            // until the connection is busy
  bool wants_read_ = false;  // the next read may begin
  bool has_input_ = false;   // the last read has received directly
};

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_LIFELINE_INPUT_H_
