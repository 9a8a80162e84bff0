// Meeting places: sockets at which clients ask for a path to a server.

#ifndef PENSTOCK_TRANSPORT_EVENT_ENGINE_MEETING_PLACE_H_
#define PENSTOCK_TRANSPORT_EVENT_ENGINE_MEETING_PLACE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "transport/event_engine/meeting/tcp_address.h"
#include "transport/fabric/fabric.h"
#include "transport/fabric/shm/listener.h"
#include "transport/fabric/shm/options.h"

namespace penstock {
namespace event_engine {

// A UNIX socket at which a server meets its clients. The socket's name is
// derived from the address of a TCP listener. A client names its TCP connection
// by the connection's two addresses, and gets a path for this connection. The
// kernel reports the client's user, who must be this process's user.
// Thread-safe.
class MeetingPlace {
 public:
  // Opens the socket. `listener` is the address at which a TCP listener is
  // bound. Fails if the name is taken, for example by another server at the
  // same port.
  static absl::StatusOr<std::unique_ptr<MeetingPlace>> Open(
      const TcpAddress& listener, fabric::shm::Options options);

  // Waits for the client of an accepted connection. Calls `done` once, unless
  // the handle is destroyed first.
  std::unique_ptr<fabric::PendingConnect> Expect(const TcpAddress& client,
                                                 const TcpAddress& server,
                                                 fabric::ConnectCallback done);

 private:
  explicit MeetingPlace(std::shared_ptr<fabric::shm::Listener> listener)
      : listener_(std::move(listener)) {}

  const std::shared_ptr<fabric::shm::Listener> listener_;
};

}  // namespace event_engine
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_EVENT_ENGINE_MEETING_PLACE_H_
