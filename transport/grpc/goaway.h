// Closes a connection without losing a call: handles GOAWAY, and informs gRPC's
// channel.

#ifndef PENSTOCK_TRANSPORT_GRPC_GOAWAY_H_
#define PENSTOCK_TRANSPORT_GRPC_GOAWAY_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "src/core/lib/iomgr/error.h"
#include "src/core/lib/transport/connectivity_state.h"
#include "src/core/lib/transport/transport.h"
#include "transport/connection/timer.h"
#include "transport/grpc/internal/grpc_abi.h"
#include "transport/grpc/stream_acceptor.h"
#include "transport/grpc/stream_list.h"
#include "transport/session/departure.h"
#include "transport/session/session.h"

namespace penstock {
namespace core {

class Stream;
class Transport;

// Closes a connection gracefully (GOAWAY), and reports the connection's state
// to gRPC's channel. Call all functions under the transport's lock, in an
// ExecCtx.
//
// The channel's threads learn of a new state with a delay, and meanwhile start
// calls on the connection. If these calls failed immediately, a thread would
// start one failing call after another. Therefore the connection carries such
// calls, or holds them until the channel knows the state.
class Goaway {
 public:
  // Refers to all pointers, which must outlive this object. `streams` are the
  // transport's.
  Goaway(Transport* transport, session::Session* session,
         const StreamList* streams, const StreamAcceptor* acceptor);

  // Starts and stops the watches of a transport operation.
  void Watch(grpc_transport_op* op);
  // Starts a graceful end of the connection, on gRPC's request.
  void Begin(const grpc_error_handle& error);
  // Ends the connection immediately, on gRPC's request. On a server, tells the
  // client which streams gRPC has not accepted, so that the client may retry
  // these streams on a different connection.
  void Disconnect(const grpc_error_handle& error);
  // Ends a server's connection, because the client sends too many pings.
  void EndForPings();
  // Closes the session after a GOAWAY, when the last call has ended and the
  // peer has received all output.
  void CloseWhenDrained();
  // Tells the channel that the session has ended with `cause`.
  void OnEnded(const absl::Status& cause);

  // Handle the session's events of the same names. OnStreamOpened() returns
  // false if the stream is refused. OnPong() returns false for an answer to
  // another ping.
  void OnGoaway(uint32_t last_stream, const absl::Status& status);
  bool OnStreamOpened(uint32_t stream) {
    return departure_.OnStreamOpened(stream);
  }
  bool OnPong(uint64_t cookie) { return departure_.OnPong(cookie); }
  // Returns the reason in the server's GOAWAY, or an empty string.
  const std::string& peer_reason() const { return departure_.peer_reason(); }

  // The functions below are for a client's streams.
  //
  // Returns true if another stream may be opened on this connection.
  bool AcceptsStreams() const {
    return !departure_.gone() && !session_->closed();
  }
  // Returns the id of a new stream. Requires AcceptsStreams().
  uint32_t NextStreamId();
  // Starts to leave the connection after the server has refused a stream. Only
  // a server that shuts down refuses streams, and its GOAWAY may arrive later.
  // gRPC retries a refused call only once, so the retry must use another
  // connection.
  void OnRefused();
  // Returns true while gRPC's channel is being told to leave this connection.
  // Until the channel knows, it may send further calls here.
  bool IsTellingChannel() const { return telling_ == Telling::kUnderWay; }
  // Calls the stream's CloseHeld() once the channel knows. Requires
  // IsTellingChannel().
  void CloseOnceTold(Stream* stream);

 private:
  // The progress of telling gRPC's channel to leave this connection.
  enum class Telling { kNot, kUnderWay, kDone };

  void Leave(const absl::Status& why);
  void TellChannel(grpc_connectivity_state state, const absl::Status& why);
  void AwaitChannel();
  void OnChannelTold();
  void StartDrainTimer(absl::Duration limit);
  void SlowDown(absl::Status* state);
  void CloseUnseenStreams(uint32_t last_stream);
  void CloseBlockedStreams();

  Transport* const transport_;
  session::Session* const session_;
  const StreamList* const streams_;
  const StreamAcceptor* const acceptor_;
  session::Departure departure_;
  connection::Timer drain_timer_;
  grpc_core::ConnectivityStateTracker state_;
  bool is_watched_ = false;  // the channel watches state_
  Telling telling_ = Telling::kNot;
  StreamList held_;  // streams that wait until the channel was told
};

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_GOAWAY_H_
