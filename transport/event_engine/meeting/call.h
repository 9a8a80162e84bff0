// A client's attempts to get a path over shared memory to a server to which it
// has a TCP connection.

#ifndef PENSTOCK_TRANSPORT_EVENT_ENGINE_MEETING_CALL_H_
#define PENSTOCK_TRANSPORT_EVENT_ENGINE_MEETING_CALL_H_

#include <memory>

#include "transport/event_engine/meeting/tcp_address.h"
#include "transport/fabric/fabric.h"
#include "transport/fabric/shm/options.h"

namespace penstock {
namespace event_engine {

// Asks the server at the UNIX socket of the listener's address, then at the
// socket of the wildcard address. Repeats this a few times, because the server
// may not have accepted the TCP connection yet.
class MeetingCall {
 public:
  // Calls `done` once, unless the handle is destroyed first.
  static std::unique_ptr<fabric::PendingConnect> Start(
      const TcpAddress& client, const TcpAddress& server,
      fabric::shm::Options options, fabric::ConnectCallback done);
};

}  // namespace event_engine
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_EVENT_ENGINE_MEETING_CALL_H_
