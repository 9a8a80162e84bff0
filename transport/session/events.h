// The events of a session and of its streams.

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

// One stream's events, in the order in which the peer caused them. Each is
// called under the session's lock, and may call the session.
class StreamEvents {
 public:
  virtual ~StreamEvents() = default;

  // `metadata` is valid during the call.
  virtual void OnHeaders(absl::string_view metadata) = 0;
  // Call Session::Consumed() once the application has taken the message. Pieces
  // without an owner are valid during the call only; see memory::Own().
  virtual void OnMessage(const memory::Payload& message, bool compressed) = 0;
  // The stream's next message is above Config::max_receive_bytes, and was
  // dropped before any memory was allocated for it.
  virtual void OnMessageTooLarge(uint64_t bytes) = 0;
  virtual void OnHalfClose() = 0;
  // The last event of the stream. `metadata` is valid during the call.
  virtual void OnTrailers(absl::string_view metadata) = 0;
  // The last event of the stream, which overtakes the others. `from_peer`: the
  // peer reset it; else the session is over, or a message cannot be had. See
  // IsRefusal() for what may be repeated.
  virtual void OnReset(const absl::Status& status, bool from_peer) = 0;
  // The window has taken the message of a SendMessage() that returned false.
  virtual void OnSendAccepted() = 0;
};

// Describes the path that carries the session, for DescribePaths.
struct PathDescription {
  std::string fabric;  // "shm", "tcp"
  std::string detail;
  std::string reason;  // why not a better one
  // At present: up to which size messages are sent eagerly, and what the
  // larger ones of the peer are cut into as they are read.
  uint64_t eager_max_bytes = 0;
  uint64_t chunk_bytes = 0;
  // Of which kind the reason is.
  metrics::Reason cause = metrics::Reason::kNone;
};

// The session's own events, called under its lock.
class SessionEvents {
 public:
  virtual ~SessionEvents() = default;

  // The peer opened a stream, larger than all before; what it sends waits for
  // Session::AttachStream().
  virtual void OnStreamOpened(uint32_t stream) = 0;
  // Streams above `last_stream` were not served; no new ones will be. With
  // wire::kLastStreamUnknown, another one follows that says which was the last.
  virtual void OnGoaway(uint32_t last_stream, const absl::Status& status) = 0;
  // Metadata to come has this entry by its number. An error ends the session.
  virtual absl::Status OnEntry(uint32_t number, absl::string_view entry) = 0;
  // The peer asks whether this side lives. The session answers.
  virtual void OnPing() = 0;
  virtual void OnPong(uint64_t cookie) = 0;

  // Connect the peer over `fabric`, then call AddFastPath or FastPathFailed,
  // unless path_epoch() is another one by then.
  virtual void OnConnectWanted(const std::string& fabric,
                               const std::string& offer,
                               const std::string& token) = 0;
  // The client tries again: wait for it on all that was offered, with a new
  // token for Session::OfferPath(); then as above.
  virtual void OnListenWanted() = 0;
  // The first choice of a path has been made, or it changed later.
  virtual void OnPathChosen(const PathDescription& path) = 0;

  // The session is over; streams have been told before. Once.
  virtual void OnClosed(const absl::Status& cause) = 0;
};

}  // namespace session
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_SESSION_EVENTS_H_
