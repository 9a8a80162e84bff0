// The state that a session keeps for each stream.

#ifndef PENSTOCK_TRANSPORT_SESSION_STREAM_H_
#define PENSTOCK_TRANSPORT_SESSION_STREAM_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/types/optional.h"
#include "transport/base/fifo.h"
#include "transport/memory/bytes.h"
#include "transport/memory/destinations.h"
#include "transport/protocol/inbox.h"
#include "transport/protocol/stream_window.h"
#include "transport/session/events.h"
#include "transport/wire/frame.h"

namespace penstock {
namespace session {

struct Stream {
  Stream(uint64_t send_window, uint64_t receive_window)
      : send_window(send_window), receive_window(receive_window) {}

  // The receiver of the stream's events. Null while the stream is unattached.
  // Until then, received items wait in the inbox.
  StreamEvents* events = nullptr;

  // True if Admission counts the stream as open.
  bool open = false;
  // True while a client's stream waits because the server's limit of open
  // streams is reached.
  bool blocked = false;
  // A queued frame, which may not be sent yet. Frames keep their order; see
  // StreamOutput.
  struct Queued {
    wire::FrameType type;
    memory::Payload message;
    std::string metadata;
    uint8_t flags = 0;  // of the message
  };
  base::Fifo<Queued> queued;
  // True if the stream waits until the session has sent earlier frames of other
  // streams.
  bool congested = false;
  // Bytes of this stream's messages that the peer has not released.
  uint64_t exposed_bytes = 0;
  // The bytes of unsent data that a draining stream has charged to the budget.
  uint64_t unsent_bytes = 0;
  // True if the stream is detached; the stream ends when nothing is queued.
  bool draining = false;
  protocol::SendWindow send_window;
  // The start time. 0 if the stream is not timed. A server times a stream only
  // for a trace.
  uint64_t begun_ns = 0;
  bool is_sample = false;  // begun_ns counts in the histogram
  // True once the server's status was sent or received.
  bool has_status = false;

  // True once the peer has half-closed the stream, or sent its trailers. No
  // more messages follow.
  bool input_ended = false;
  protocol::Inbox inbox;
  protocol::ReceiveWindow receive_window;
  // The way in which a message arrived.
  enum class Way {
    kEager,
    kAnnounced,
    kRefused,  // announced, and larger than this side takes
  };
  // A received message that the application has not taken. `cost` counts in the
  // stream's window, `held` in the budget for unread data, and `budgeted` in
  // the read budget. `id` is the id of the message's announcement. A message
  // without an announcement has the id of the last announcement before it. The
  // oldest message comes first.
  struct Unconsumed {
    uint64_t cost;
    uint64_t held;
    uint64_t id;
    Way way;
    uint64_t budgeted;
    uint64_t begun_ns;  // for a trace; 0: no trace
  };
  base::Fifo<Unconsumed> unconsumed;
  uint64_t unconsumed_cost = 0;
  uint64_t held_bytes = 0;             // charged as unread
  bool wants_message = false;          // the application waits for the next one
  absl::optional<absl::Status> reset;  // set before Attach(), which reports it
  // The destinations for the next announced message; mostly null.
  std::shared_ptr<memory::Destinations> destinations;
};

}  // namespace session
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_SESSION_STREAM_H_
