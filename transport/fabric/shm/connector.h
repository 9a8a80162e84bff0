// Connects to a peer's listener.

#ifndef PENSTOCK_TRANSPORT_FABRIC_SHM_CONNECTOR_H_
#define PENSTOCK_TRANSPORT_FABRIC_SHM_CONNECTOR_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "transport/fabric/attempt.h"
#include "transport/fabric/shm/address.h"
#include "transport/fabric/shm/options.h"
#include "transport/fabric/shm/peer_socket.h"
#include "transport/fabric/shm/segment.h"
#include "transport/fabric/shm/sharing.h"
#include "transport/fabric/timed_setup.h"
#include "transport/progress/event_loop.h"

namespace penstock {
namespace fabric {
namespace shm {

// An attempt to connect to one peer.
//
//   state     event        action                                   next
//   started   begins       if busy aside, begin again in a while    started
//                          connect, ask for the uid, send kHello    waiting
//                          on error finish with it                  ended
//   waiting   packet, HUP  kWelcome: finish with the endpoint       ended
//                          else finish with an error                ended
//   and the transitions of TimedSetup
class Connector : public TimedSetup {
 public:
  // Makes an attempt with a token of at most kMaxTokenBytes.
  static std::shared_ptr<Connector> Create(Options options,
                                           progress::EventLoop* loop,
                                           SocketAddress address,
                                           std::shared_ptr<Attempt> attempt);

 private:
  Connector(Options options, progress::EventLoop* loop, SocketAddress address,
            std::shared_ptr<Attempt> attempt);

  std::shared_ptr<Connector> self();
  void BeginOnLoop() override;
  void ReleaseOnLoop() override;
  // Connects, identifies the peer, and greets it.
  absl::Status Reach();
  // Sends kHello with this side's control segment.
  absl::Status Greet();
  // Waits for the peer's answer.
  absl::Status Wait();
  absl::StatusOr<std::unique_ptr<Endpoint>> ReceiveWelcome();

  const Options options_;
  const SocketAddress address_;
  PeerSocket socket_;
  Sharing sharing_;
  absl::optional<Segment> control_;
  progress::EventLoop::Id watch_ = 0;
};

}  // namespace shm
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_SHM_CONNECTOR_H_
