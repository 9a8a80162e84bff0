// The handshake at the beginning of a connection that uses TLS.

#ifndef PENSTOCK_TRANSPORT_EVENT_ENGINE_STREAM_TLS_HANDSHAKE_H_
#define PENSTOCK_TRANSPORT_EVENT_ENGINE_STREAM_TLS_HANDSHAKE_H_

#include <cstdint>
#include <string>

#include "absl/types/span.h"
#include "transport/event_engine/stream/tls_opening.h"
#include "transport/event_engine/stream/tls_records.h"

namespace penstock {
namespace event_engine {

// Finds out when TLS has authenticated the peer, by the types of the records. A
// path costs memory, which strangers should not get. Not thread-safe.
//
//   end     event                                        next
//   client  sends application data                       kOver
//   server  sends                                        answered
//   server  answered, and receives application data      proven
//   server  receives a part of a handshake record        neither
//   server  proven, and sends                            kOver
//   either  the client's first bytes are no ClientHello  kOther
//
// In TLS 1.3 the client's first application data contain the message Finished;
// in TLS 1.2 they follow this message. A client sends them only to a server
// that it trusts. If the server cannot decrypt them, or does not trust the
// client, it sends at most an alert, and ends the connection.
//
// Early data are application data that a server may skip without decrypting
// them. The server sends nothing in response, but a stranger may send a
// handshake record before or after them, to which the server responds.
// Therefore application data prove something only if they follow the server's
// answer to the last handshake record, and if no such record follows them.
class TlsHandshake {
 public:
  enum class State { kInProgress, kOver, kOther };

  explicit TlsHandshake(bool is_client) : is_client_(is_client) {}

  // Take the next bytes of a direction.
  void OnSent(absl::Span<const uint8_t> bytes);
  void OnReceived(absl::Span<const uint8_t> bytes);

  State state() const { return state_; }
  // Returns the client's first bytes. Requires State::kOver.
  const std::string& opening() const { return opening_.bytes(); }

 private:
  void TakeOpening(absl::Span<const uint8_t> bytes);
  // Follows the client's records, to find application data that prove the
  // client.
  void TakeRecords(absl::Span<const uint8_t> bytes);

  const bool is_client_;
  State state_ = State::kInProgress;
  TlsOpening opening_;
  TlsRecords records_;  // of the client's direction
  bool has_answered_ = false;
  bool has_proof_ = false;
};

}  // namespace event_engine
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_EVENT_ENGINE_STREAM_TLS_HANDSHAKE_H_
