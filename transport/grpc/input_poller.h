// Lets waiting threads receive from a connection's socket before they sleep.

#ifndef PENSTOCK_TRANSPORT_GRPC_INPUT_POLLER_H_
#define PENSTOCK_TRANSPORT_GRPC_INPUT_POLLER_H_

#include <functional>
#include <memory>

#include "transport/progress/poll_set.h"

namespace penstock {
namespace core {

// Keeps the socket of one connection in the process's PollSet while the socket
// often has input. The thread that waits for a message then receives the
// message itself. Otherwise the one thread in epoll_wait() would receive for
// all threads, and wake each of them.
//
// gRPC's epoll set also contains the socket and reports all input. Therefore no
// input is lost if no thread polls, and the PollSet need not arm a doorbell.
//
// Thread-compatible: the connection's lock guards the object.
class InputPoller {
 public:
  // Receives a bounded amount of input. Returns true if there was any. Called
  // without locks.
  using Receive = std::function<bool()>;

  InputPoller() = default;
  ~InputPoller() { Stop(); }
  InputPoller(const InputPoller&) = delete;
  InputPoller& operator=(const InputPoller&) = delete;

  // Adds `fd` to the PollSet. The PollSet keeps `receive` until Stop(), or
  // until a call in progress has ended. `fd` must stay open for that time. Does
  // nothing if the process already polls many sockets.
  void Start(int fd, Receive receive);
  // Removes the socket. Does nothing if the socket is not in the PollSet.
  void Stop();
  bool is_started() const { return socket_ != nullptr; }
  // Returns true if the last few checks of the socket found no input. The
  // receiver then calls Stop(), because further checks would waste time.
  bool is_quiet() const;

 private:
  class PolledSocket;

  std::shared_ptr<PolledSocket> socket_;
  progress::PollSet::SlotId slot_ = 0;
};

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_INPUT_POLLER_H_
