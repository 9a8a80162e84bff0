// Lets waiting threads poll a session's fast path.

#ifndef PENSTOCK_TRANSPORT_CONNECTION_PATH_POLLER_H_
#define PENSTOCK_TRANSPORT_CONNECTION_PATH_POLLER_H_

#include <memory>

#include "transport/fabric/fabric.h"
#include "transport/paths/path_relief.h"
#include "transport/progress/poll_set.h"

namespace penstock {
namespace connection {

// A registration of a session's path in the process's PollSet and in
// PathRelief. Call all functions under the owner's lock.
class PathPoller {
 public:
  // The connection that owns the poller.
  class Owner : public paths::PathRelief::Owner {
   public:
    // Returns true if the session may continue without a path. Called under the
    // lock.
    virtual bool MayGiveUpPath() const = 0;
    // Delivers a bounded amount of the path's input. Returns true if there was
    // input. Called on any thread, without the lock.
    virtual bool PollPath() = 0;
    // Schedules a poll of the path on the executor. Called under the lock.
    virtual void SchedulePolling() = 0;
    // Takes a reference. The PollSet holds a reference while it contains a
    // path.
    void Ref() override = 0;
    virtual void Unref() = 0;
  };

  explicit PathPoller(Owner* owner) : owner_(owner) {}
  ~PathPoller() { Watch(nullptr); }

  // Polls `path` instead of the previous path. Null means no path. A thread may
  // still be polling the previous path, and keeps that path alive. Schedules
  // polling if `path` has input already, for which no doorbell rang.
  void Watch(std::shared_ptr<fabric::Endpoint> path);

 private:
  class Polled;

  void OfferToGiveUp();
  void WithdrawOffer();

  Owner* const owner_;
  std::shared_ptr<fabric::Endpoint> path_;
  progress::PollSet::SlotId slot_ = 0;
  paths::PathRelief* relief_ = nullptr;  // the issuer of relief_id_
  paths::PathRelief::Id relief_id_ = 0;
};

}  // namespace connection
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_CONNECTION_PATH_POLLER_H_
