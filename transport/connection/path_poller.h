// Polls a session's fast path, on waiting threads and after doorbells.

#ifndef PENSTOCK_TRANSPORT_CONNECTION_PATH_POLLER_H_
#define PENSTOCK_TRANSPORT_CONNECTION_PATH_POLLER_H_

#include <memory>

#include "transport/base/mutex.h"
#include "transport/connection/executor.h"
#include "transport/fabric/fabric.h"
#include "transport/paths/path_relief.h"
#include "transport/progress/poll_set.h"

namespace penstock {
namespace connection {

// Polls a session's path. Keeps the path registered in the process's PollSet
// and in PathRelief. Thread-safe.
//
// Polls after a doorbell until all input is delivered, because no other thread
// may be polling. Each poll is bounded, so that other tasks of the executor can
// run in between.
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
    // Arranges for further polling. Called without the lock, when input remains
    // after several polls.
    virtual void LeaveInput() = 0;
    // Adds a reference. The PollSet holds a reference while it contains a path,
    // and each scheduled poll holds one.
    void Ref() override = 0;
    virtual void Unref() = 0;
  };

  // The number of polls of one path after a doorbell. If input is left
  // afterwards, the poller calls LeaveInput().
  static constexpr int kPolls = 2;

  // `mu` is the owner's lock.
  PathPoller(Owner* owner, Executor* executor, base::Mutex* mu)
      : owner_(owner), executor_(executor), mu_(mu) {}
  ~PathPoller() { Watch(nullptr); }

  // Replaces the watched path by `path`. Null means no path. A thread may still
  // be polling the previous path, and keeps that path alive. Schedules polling
  // if `path` already has input, because no doorbell rings for such input. Call
  // under the lock.
  void Watch(std::shared_ptr<fabric::Endpoint> path);
  // Returns the watched path. Call under the lock.
  const std::shared_ptr<fabric::Endpoint>& path() const {
    mu_->AssertHeld();
    return path_;
  }

  // Call the functions below without the lock.
  //
  // Delivers the path's input. Polls at most once on this thread, and schedules
  // further polls. Calls LeaveInput() if input is left after `polls` polls.
  void PollUntilEmpty(int polls = kPolls);
  // Calls PollUntilEmpty() on the executor. May be called under the lock, too.
  void Schedule(int polls = kPolls);
  // Clears the wake-up of `path`, which has woken a thread, and polls.
  void OnWakeup(const std::shared_ptr<fabric::Endpoint>& path);

 private:
  class Polled;

  void OfferToGiveUp();
  void WithdrawOffer();

  Owner* const owner_;
  Executor* const executor_;
  base::Mutex* const mu_;
  std::shared_ptr<fabric::Endpoint> path_ ABSL_GUARDED_BY(*mu_);
  progress::PollSet::SlotId slot_ = 0;
  paths::PathRelief* relief_ = nullptr;  // the issuer of relief_id_
  paths::PathRelief::Id relief_id_ = 0;
};

}  // namespace connection
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_CONNECTION_PATH_POLLER_H_
