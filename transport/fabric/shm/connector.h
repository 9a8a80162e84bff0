// Reaches a peer's listener.

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
#include "transport/progress/event_loop.h"

namespace penstock {
namespace fabric {
namespace shm {

// One attempt to connect. Everything but Create() runs on the event loop's
// thread. It lives by its timer and its watch, which share it.
//
//   state      event          action                            next
//   kIdle      Start          connect, ask for the uid, send    kWaiting
//                             kHello; on error finish           kEnded
//   kIdle      Start, but     Start again, in a while           kIdle
//              busy aside
//   kWaiting   packet, HUP    kWelcome: finish with the         kEnded
//                             endpoint; else with an error
//   any        time is over   finish with DEADLINE_EXCEEDED     kEnded
//   any        Stop           none                              kEnded
class Connector : public std::enable_shared_from_this<Connector> {
 public:
  // Needs a token of at most kMaxTokenBytes.
  static std::shared_ptr<Connector> Create(Options options,
                                           progress::EventLoop* loop,
                                           std::shared_ptr<Attempt> attempt);

  void StartOnLoop(const SocketAddress& address);
  // The attempt was cancelled.
  void StopOnLoop();

 private:
  enum class State { kIdle, kWaiting, kEnded };

  Connector(Options options, progress::EventLoop* loop,
            std::shared_ptr<Attempt> attempt);

  absl::Status Begin(const SocketAddress& address);
  absl::Status Greet();
  absl::Status Wait();
  absl::StatusOr<std::unique_ptr<Endpoint>> ReceiveWelcome();
  void FinishOnLoop(absl::StatusOr<std::unique_ptr<Endpoint>> result);

  const Options options_;
  progress::EventLoop* const loop_;
  const std::shared_ptr<Attempt> attempt_;
  State state_ = State::kIdle;
  PeerSocket socket_;
  Sharing sharing_;
  absl::optional<Segment> control_;
  progress::EventLoop::Id watch_ = 0;
  progress::EventLoop::Id timer_ = 0;
};

}  // namespace shm
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_SHM_CONNECTOR_H_
