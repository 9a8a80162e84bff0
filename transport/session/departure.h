// Ends a connection without losing a call: GOAWAY, as in gRPC's HTTP/2
// transport.

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
// A departure has two steps, because new streams of the client may be in
// flight. The client answers the ping after all streams that it opened before
// it saw the first GOAWAY. A server in kDraining serves the streams that arrive
// before this answer, and refuses later streams. A client in kLeaving still
// opens streams, because its channel learns of the GOAWAY a moment later, and
// calls started in that moment must not fail. A client in kGone opens no
// streams.
//
// Thread-compatible, like the session. Does nothing if the session is closed.
class Departure {
 public:
  // Refers to `session`, which must outlive this object. A client's stream ids
  // start at `next_stream`.
  explicit Departure(Session* session, uint32_t next_stream = 1)
      : session_(session), next_stream_(next_stream) {}

  bool gone() const { return state_ == State::kGone; }

  // Starts draining, on a server. Returns false if draining had begun before.
  // After true, call OnTimeLimit() if the client does not answer in time.
  bool Begin(const absl::Status& why);
  void OnTimeLimit();
  // Returns true while a client waits for its channel to stop using the
  // session.
  bool leaving() const { return state_ == State::kLeaving; }
  // Ends draining and returns true if `cookie` answers the ping of Begin().
  bool OnPong(uint64_t cookie);
  // Sends the last GOAWAY immediately.
  void End(const absl::Status& why);
  // Records a stream that the client has opened. Returns false after the last
  // GOAWAY; the stream must then be refused.
  bool OnStreamOpened(uint32_t stream);
  // Excludes the streams from `first` on from the last GOAWAY, because they are
  // not served.
  void TakeBack(uint32_t first) { last_opened_ = first - 1; }

  // Handles the server's GOAWAY, on a client. Returns INVALID_ARGUMENT if the
  // server names a higher last stream than before.
  absl::Status OnGoaway(uint32_t last_stream, const std::string& reason);
  // Returns the id of a new stream. Each id is used once. After the last id,
  // gone() is true. Call only if !gone().
  uint32_t OpenStream();
  // Records that the channel has stopped sending calls to this session.
  void OnChannelLeft();
  void Leave();
  // Returns the reason in the server's GOAWAY. Empty if no GOAWAY has arrived.
  const std::string& peer_reason() const { return peer_reason_; }

 private:
  enum class State { kOpen, kDraining, kLeaving, kGone };

  Session* const session_;
  State state_ = State::kOpen;
  uint32_t next_stream_;
  absl::Status reason_;  // valid in kDraining
  uint32_t last_opened_ = 0;
  uint32_t last_served_ = wire::kLastStreamUnknown;  // by the peer
  std::string peer_reason_;
};

}  // namespace session
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_SESSION_DEPARTURE_H_
