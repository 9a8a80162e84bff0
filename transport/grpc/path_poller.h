// Puts a session's fast path among what waiting threads poll.

#ifndef PENSTOCK_TRANSPORT_GRPC_PATH_POLLER_H_
#define PENSTOCK_TRANSPORT_GRPC_PATH_POLLER_H_

#include <memory>

#include "transport/fabric/fabric.h"
#include "transport/progress/poll_set.h"

namespace penstock {
namespace core {

// Used under its owner's lock.
class PathPoller {
 public:
  // The transport.
  class Owner {
   public:
    virtual ~Owner() = default;
    // Delivers what waits at the path; from any thread, without the lock.
    virtual bool PollPath() = 0;
    // The same soon, from a place of its own: called under the lock.
    virtual void SchedulePolling() = 0;
    // Kept while the path is polled.
    virtual void Ref() = 0;
    virtual void Unref() = 0;
  };

  explicit PathPoller(Owner* owner) : owner_(owner) {}
  ~PathPoller() { Watch(nullptr); }

  // Polls `path` from now on, instead of the one before; null: none. A thread
  // that polls the one before may go on for a while, and keeps it alive. What
  // has come already, for which nobody will be rung, is scheduled.
  void Watch(std::shared_ptr<fabric::Endpoint> path);

 private:
  class Polled;

  Owner* const owner_;
  std::shared_ptr<fabric::Endpoint> path_;
  progress::PollSet::SlotId slot_ = 0;
};

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_PATH_POLLER_H_
