// Lets waiting threads receive from a connection's socket before they sleep.

#ifndef PENSTOCK_TRANSPORT_GRPC_INPUT_POLLER_H_
#define PENSTOCK_TRANSPORT_GRPC_INPUT_POLLER_H_

#include <functional>
#include <memory>

#include "transport/base/places.h"
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

  // Takes one of the places for polled sockets, until Stop(). Returns false if
  // the process polls many sockets already, or if PENSTOCK_POLLING is "event".
  // Does not allocate memory.
  bool TakePlace();
  // Adds `fd` to the PollSet, which keeps `receive` until Stop(), or until a
  // call that is running has ended. `fd` must stay open for that time. Requires
  // that TakePlace() has returned true since the last Stop().
  void Start(int fd, Receive receive);
  // Removes the socket. Does nothing if the socket is not in the PollSet.
  void Stop();
  bool is_started() const { return socket_ != nullptr; }
  // Returns true if threads have looked for input in vain for some time. The
  // receiver then calls Stop().
  bool is_quiet() const;

 private:
  class PolledSocket;

  base::Places::Place place_;  // among the polled sockets of the process
  std::shared_ptr<PolledSocket> socket_;
  progress::PollSet::SlotId slot_ = 0;
};

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_INPUT_POLLER_H_
