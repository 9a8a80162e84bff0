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

  // Null while unattached. Input waits in the inbox until the stream is
  // attached.
  StreamEvents* events = nullptr;

  // Counts among the open ones; see Admission.
  bool open = false;
  // A client's, which waits to be opened.
  bool blocked = false;
  // Frames that may not leave yet, in order; see StreamOutput.
  struct Queued {
    wire::FrameType type;
    memory::Payload message;
    std::string metadata;
    uint8_t flags = 0;  // of the message
  };
  base::Fifo<Queued> queued;
  // Waits for the session to send what others have added.
  bool congested = false;
  // Of its messages, what the peer has not released.
  uint64_t exposed_bytes = 0;
  // The charge of a draining stream for its unsent output.
  uint64_t unsent_bytes = 0;
  // Detached; here until nothing is queued.
  bool draining = false;
  protocol::SendWindow send_window;
  // The time at which the stream began. Zero if the stream is not timed, or is
  // a server's that nobody traces.
  uint64_t begun_ns = 0;
  bool is_sample = false;  // begun_ns counts in the histogram
  // The server's status has come, or was sent.
  bool has_status = false;

  protocol::Inbox inbox;
  protocol::ReceiveWindow receive_window;
  // The way in which a message came.
  enum class Way {
    kEager,
    kAnnounced,
    kRefused,  // announced, and larger than this side takes
  };
  // Received and not consumed, oldest first: what each cost the window, the
  // budget of what is unread, and that of reading. `id` is that of the
  // announcement that it is, or came after.
  struct Unconsumed {
    uint64_t cost;
    uint64_t held;
    uint64_t id;
    Way way;
    uint64_t budgeted;
    uint64_t begun_ns;  // for a trace; 0: there is none
  };
  base::Fifo<Unconsumed> unconsumed;
  uint64_t unconsumed_cost = 0;
  uint64_t held_bytes = 0;             // charged to the budget, as unread
  bool wants_message = false;          // the application waits for the next one
  absl::optional<absl::Status> reset;  // came before it was attached
  // For its next announced message; mostly null.
  std::shared_ptr<memory::Destinations> destinations;
};

}  // namespace session
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_SESSION_STREAM_H_
