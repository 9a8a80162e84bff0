// Lets waiting threads poll a session's fast path.

#ifndef PENSTOCK_TRANSPORT_CONNECTION_PATH_POLLER_H_
#define PENSTOCK_TRANSPORT_CONNECTION_PATH_POLLER_H_

#include <memory>

#include "transport/fabric/fabric.h"
#include "transport/paths/path_relief.h"
#include "transport/progress/poll_set.h"

namespace penstock {
namespace connection {

// Adds the path to the process's PollSet, and to those that may be given up.
// Call everything under the owner's lock.
class PathPoller {
 public:
  // The connection.
  class Owner : public paths::PathRelief::Owner {
   public:
    // Returns whether the session may go on without a path. Called under the
    // lock.
    virtual bool MayGiveUpPath() const = 0;
    // Delivers a bounded amount of the path's input. Returns whether there was
    // any. Called from any thread, without the lock.
    virtual bool PollPath() = 0;
    // Polls the path soon, from the ExecCtx. Called under the lock.
    virtual void SchedulePolling() = 0;
    // The PollSet holds a reference while a path is in it.
    void Ref() override = 0;
    virtual void Unref() = 0;
  };

  explicit PathPoller(Owner* owner) : owner_(owner) {}
  ~PathPoller() { Watch(nullptr); }

  // Polls `path` instead of the path before. Null: polls no path. A thread may
  // still be polling the path before, and keeps that path alive. If `path` has
  // input already, for which no doorbell was rung, schedules polling.
  void Watch(std::shared_ptr<fabric::Endpoint> path);

 private:
  class Polled;

  void OfferToGiveUp();
  void WithdrawOffer();

  Owner* const owner_;
  std::shared_ptr<fabric::Endpoint> path_;
  progress::PollSet::SlotId slot_ = 0;
  paths::PathRelief* relief_ = nullptr;  // where relief_id_ is from
  paths::PathRelief::Id relief_id_ = 0;
};

}  // namespace connection
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_CONNECTION_PATH_POLLER_H_
