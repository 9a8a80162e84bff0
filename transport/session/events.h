// Events that a session reports to its users.

#ifndef PENSTOCK_TRANSPORT_SESSION_EVENTS_H_
#define PENSTOCK_TRANSPORT_SESSION_EVENTS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "transport/memory/bytes.h"
#include "transport/metrics/labels.h"

namespace penstock {
namespace session {

// Receives one stream's events, in the order in which the peer caused them.
// Each function is called under the session's lock, and may call the session.
class StreamEvents {
 public:
  virtual ~StreamEvents() = default;

  // Reports the stream's headers. `metadata` is valid during the call.
  virtual void OnHeaders(absl::string_view metadata) = 0;
  // Reports a message. Call StreamInput::Consumed() once the application has
  // taken the message. A piece without an owner is valid only during the call;
  // see memory::Own().
  virtual void OnMessage(const memory::Payload& message, bool compressed) = 0;
  // Reports that the stream's next message is above Config::max_receive_bytes.
  // The message was dropped before any memory was allocated for it.
  virtual void OnMessageTooLarge(uint64_t bytes) = 0;
  virtual void OnHalfClose() = 0;
  // Reports the regular end of the stream, as its last event. `metadata` is
  // valid during the call.
  virtual void OnTrailers(absl::string_view metadata) = 0;
  // Reports the early end of the stream, as its last event. Earlier events of
  // the stream that have not been reported are dropped. `from_peer` is true if
  // the peer reset the stream. Otherwise the session has ended, or a message
  // cannot be read. IsRefusal() tells if the call may be repeated.
  virtual void OnReset(const absl::Status& status, bool from_peer) = 0;
  // Reports that a message queued by SendMessage() has left the stream's queue.
  virtual void OnSendAccepted() = 0;
};

// Describes the path that carries the session, for DescribePaths.
struct PathDescription {
  std::string fabric;  // "shm", "tcp"
  std::string detail;
  std::string reason;  // why no better path is used
  // The current sizes. A message of up to eager_max_bytes is sent eagerly. A
  // larger message from the peer is read in chunks of chunk_bytes.
  uint64_t eager_max_bytes = 0;
  uint64_t chunk_bytes = 0;
  // The kind of the reason in `reason`.
  metrics::Reason cause = metrics::Reason::kNone;
};

// Receives the events of a session, except those about the data of one stream
// (StreamEvents) and about fast paths (PathEvents). Called under the session's
// lock.
class SessionEvents {
 public:
  virtual ~SessionEvents() = default;

  // Reports that the peer has opened a stream. Ids increase. The stream's data
  // is kept until Session::AttachStream().
  virtual void OnStreamOpened(uint32_t stream) = 0;
  // Reports that the server has not served the streams above `last_stream`, and
  // will serve no new streams. With wire::kLastStreamUnknown, a second GOAWAY
  // follows and names the last stream.
  virtual void OnGoaway(uint32_t last_stream, const absl::Status& status) = 0;
  // Adds an entry to the table of metadata. Later metadata refers to the entry
  // by `number`. An error ends the session.
  virtual absl::Status OnEntry(uint32_t number, absl::string_view entry) = 0;
  // Reports a ping from the peer. The session answers the ping.
  virtual void OnPing() = 0;
  virtual void OnPong(uint64_t cookie) = 0;
  // Reports the end of the session, once, after the last events of all streams.
  virtual void OnClosed(const absl::Status& cause) = 0;
};

// Receives a session's events about its fast paths, under its lock.
class PathEvents {
 public:
  virtual ~PathEvents() = default;

  // Requests a connection to the peer over `fabric`. The owner then calls
  // FastPath::Add() or OnFailure(). The owner drops the result if
  // FastPath::epoch() has changed meanwhile.
  virtual void OnConnectWanted(const std::string& fabric,
                               const std::string& offer,
                               const std::string& token) = 0;
  // Reports that the client tries again to connect a path. The owner listens
  // for the client on all offered fabrics, calls FastPath::Offer() with a new
  // token, and then calls FastPath::Add() or OnFailure().
  virtual void OnListenWanted() = 0;
  // Reports the first choice of a path, and each later change.
  virtual void OnPathChosen(const PathDescription& path) = 0;
};

}  // namespace session
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_SESSION_EVENTS_H_
