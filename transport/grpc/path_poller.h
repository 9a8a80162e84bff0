// Puts a session's fast path among what waiting threads poll.

#ifndef PENSTOCK_TRANSPORT_GRPC_PATH_POLLER_H_
#define PENSTOCK_TRANSPORT_GRPC_PATH_POLLER_H_

#include <memory>

#include "transport/fabric/fabric.h"
#include "transport/grpc/grpc_abi.h"
#include "transport/progress/poll_set.h"

namespace penstock {
namespace core {

class Transport;

// Used under the transport's lock.
class PathPoller {
 public:
  explicit PathPoller(Transport* transport) : transport_(transport) {}
  ~PathPoller() { Watch(nullptr); }

  // Polls `path` from now on, instead of the one before; null: none. A thread
  // that polls the one before may go on for a while, and keeps it alive.
  // True: there is input already, which nobody will be rung for.
  bool Watch(std::shared_ptr<fabric::Endpoint> path);

 private:
  class Polled;

  Transport* const transport_;
  std::shared_ptr<fabric::Endpoint> path_;
  progress::PollSet::SlotId slot_ = 0;
};

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_PATH_POLLER_H_
