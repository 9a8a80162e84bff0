// GOAWAY: ends a connection without losing a call, as gRPC's HTTP/2 transport
// does.

#ifndef PENSTOCK_TRANSPORT_SESSION_DEPARTURE_H_
#define PENSTOCK_TRANSPORT_SESSION_DEPARTURE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "transport/session/session.h"
#include "transport/wire/frame.h"

namespace penstock {
namespace session {

//   state      event                     action                       next
//   kOpen      server: Begin             send GOAWAY without a last   kDraining
//                                        stream, and a ping
//   kDraining  OnPong, or OnTimeLimit    send GOAWAY with the last    kGone
//                                        stream
//   kOpen or   server: End               send GOAWAY with the last    kGone
//   kDraining                            stream
//   kOpen      client: OnGoaway without  hold the answer to the ping  kLeaving
//              a last stream
//   kLeaving   client: OnChannelLeft, or answer the ping              kGone
//              OnTimeLimit
//   any        client: OnGoaway with a   answer the ping              kGone
//              last stream, Leave, or
//              the last id is used
//
// In two steps, as the client may have opened streams that are under way: when
// it has answered the ping it knows of the first GOAWAY, and all that it has
// opened is here. A server serves what is opened while it is kDraining, and
// nothing later. A client in kLeaving still opens what its channel sends here,
// because the channel hears of the GOAWAY a moment later. Without that, calls
// of that moment would fail. A client in kGone opens nothing.
//
// Thread-compatible, as the session is. Does nothing to a session that is
// closed.
class Departure {
 public:
  // `session` outlives it. A client's streams are numbered from `next_stream`.
  explicit Departure(Session* session, uint32_t next_stream = 1)
      : session_(session), next_stream_(next_stream) {}

  bool gone() const { return state_ == State::kGone; }

  // A server's. True: call OnTimeLimit() if the client does not answer in time.
  bool Begin(const absl::Status& why);
  void OnTimeLimit();
  // Returns true while a client's channel may still send calls here.
  bool leaving() const { return state_ == State::kLeaving; }
  // Returns true if the answer belongs to a ping of Begin().
  bool OnPong(uint64_t cookie);
  // At once.
  void End(const absl::Status& why);
  // The client has opened a stream. False: too late, as it knows by now.
  bool OnStreamOpened(uint32_t stream);
  // Streams from `first` on will not be served.
  void TakeBack(uint32_t first) { last_opened_ = first - 1; }

  // A client's. INVALID_ARGUMENT: the server took back what it had said.
  absl::Status OnGoaway(uint32_t last_stream, const std::string& reason);
  // Returns the id of a new stream. An id is used once, so the connection is
  // gone after the last one. Needs !gone().
  uint32_t OpenStream();
  // The channel sends no more calls here.
  void OnChannelLeft();
  void Leave();
  // Returns the server's reason to go. Empty if the server did not go.
  const std::string& peer_reason() const { return peer_reason_; }

 private:
  enum class State { kOpen, kDraining, kLeaving, kGone };

  Session* const session_;
  State state_ = State::kOpen;
  uint32_t next_stream_;
  absl::Status reason_;  // while it is kDraining
  uint32_t last_opened_ = 0;
  uint32_t last_served_ = wire::kLastStreamUnknown;  // by the peer
  std::string peer_reason_;
};

}  // namespace session
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_SESSION_DEPARTURE_H_
