// Begins and ends the streams of a session.

#ifndef PENSTOCK_TRANSPORT_SESSION_STREAMS_H_
#define PENSTOCK_TRANSPORT_SESSION_STREAMS_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "transport/session/admission.h"
#include "transport/session/events.h"
#include "transport/session/parts.h"
#include "transport/session/stream_input.h"
#include "transport/session/stream_output.h"
#include "transport/session/stream_table.h"

namespace penstock {
namespace session {

//   state       event                     action                 next
//   -           client: Attach            -                      attached
//   -           server: headers           OnStreamOpened         unattached
//   -           server: headers, but no   send a reset           -
//               place (see Admission)
//   unattached  Attach                    deliver what has come  attached
//   unattached  reset by the peer         keep it for Attach     unattached
//   attached    Detach                    drop what has come     draining
//   attached    reset by the peer, or a   OnReset, and drop all  ended
//               message that cannot be
//               read
//   draining    nothing is queued, or     -                      ended
//               reset by the peer
//
// The table of a session's streams, and both directions of their data. Not
// thread-safe.
class Streams : private StreamInput::Owner, private StreamOutput::Owner {
 public:
  // Refers to the arguments and to the objects in `parts`. All must outlive
  // this object.
  Streams(const Parts& parts, SessionEvents* events);

  StreamInput& input() { return input_; }
  const StreamInput& input() const { return input_; }
  StreamOutput& output() { return output_; }
  const StreamOutput& output() const { return output_; }

  // Applies two limits from the peer's hello: the unread bytes of each stream,
  // and the number of open streams.
  void OnHello(uint64_t peer_window, uint32_t max_streams);

  // Attaches `events` to the stream; see Session::AttachStream().
  void Attach(uint32_t id, StreamEvents* events);
  // Stops reporting the stream's events, and drops its received data. Queued
  // data is still sent. Ignores a stream that has ended.
  void Detach(uint32_t id);
  // Returns true if the peer has opened the stream and nobody has attached it.
  bool IsUnattached(uint32_t id);
  // Returns true for a client's stream that waits because of the server's
  // limit. Such a stream has sent nothing.
  bool IsBlocked(uint32_t id);

  // Handles a headers frame. The first one opens a server's stream.
  absl::Status OnHeaders(uint32_t id, absl::Span<const uint8_t> metadata);
  void OnPeerReset(uint32_t id, const absl::Status& status);

  // Resets all streams. Call when the session is over.
  void Close(const absl::Status& status);
  bool empty() const { return table_.empty(); }
  size_t size() const { return table_.size(); }

 private:
  Stream* Add(uint32_t id);
  void Erase(uint32_t id, const Stream& stream);
  bool AddOpened(uint32_t id);
  void Reset(uint32_t id, const absl::Status& status, bool from_peer);
  void FailStream(uint32_t id, const absl::Status& status) override;
  void EndStream(uint32_t id) override;

  const Config& config_;
  Counters* const counters_;
  const Recorder* const recorder_;
  SessionEvents* const events_;
  StreamTable table_;
  Admission admission_;
  StreamInput input_;
  StreamOutput output_;
  uint64_t peer_window_ = 0;
  uint32_t last_opened_ = 0;  // by the peer
};

}  // namespace session
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_SESSION_STREAMS_H_
