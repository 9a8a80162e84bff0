// Sets up one side of a connection, with a time limit.

#ifndef PENSTOCK_TRANSPORT_FABRIC_TIMED_SETUP_H_
#define PENSTOCK_TRANSPORT_FABRIC_TIMED_SETUP_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "transport/fabric/attempt.h"
#include "transport/fabric/fabric.h"
#include "transport/progress/event_loop.h"

namespace penstock {
namespace fabric {

// A set-up of an endpoint, with a time limit. Ends once: with an endpoint, with
// an error, or, if the attempt was cancelled, without a callback. The subclass
// does the work in between. Launch() may be called on any thread; everything
// else runs on the event loop's thread. The timer holds a reference to this
// object until the end.
//
//   state          event         action                             next
//   idle           StartOnLoop   start the limit, BeginOnLoop       started
//   started        FinishOnLoop  ReleaseOnLoop, finish the attempt  ended
//   started        the limit     FinishOnLoop(DEADLINE_EXCEEDED)    ended
//   idle, started  StopOnLoop    ReleaseOnLoop                      ended
//   ended          any           none                               ended
class TimedSetup : public std::enable_shared_from_this<TimedSetup> {
 public:
  TimedSetup(const TimedSetup&) = delete;
  TimedSetup& operator=(const TimedSetup&) = delete;
  virtual ~TimedSetup() = default;

  // Starts `setup` on its loop, soon. Destroying the handle cancels the attempt
  // immediately, and then stops `setup` on the loop.
  static std::unique_ptr<PendingConnect> Launch(
      const std::shared_ptr<TimedSetup>& setup);

  void StartOnLoop();
  // Stops the setup without calling the attempt's callback.
  void StopOnLoop();

 protected:
  // Finishes `attempt` with DEADLINE_EXCEEDED and `late` when `limit` is over.
  TimedSetup(progress::EventLoop* loop, std::shared_ptr<Attempt> attempt,
             absl::Duration limit, std::string late);

  // Ends with `result`. Does nothing if the setup has ended.
  void FinishOnLoop(absl::StatusOr<std::unique_ptr<Endpoint>> result);
  bool has_ended() const { return has_ended_; }
  progress::EventLoop* loop() const { return loop_; }
  const Attempt& attempt() const { return *attempt_; }

 private:
  // Does the first step. May finish immediately.
  virtual void BeginOnLoop() = 0;
  // Releases the resources of the set-up. Called once, before the attempt's
  // callback.
  virtual void ReleaseOnLoop() = 0;

  progress::EventLoop* const loop_;
  const std::shared_ptr<Attempt> attempt_;
  const absl::Duration limit_;
  const std::string late_;
  progress::EventLoop::Id timer_ = 0;
  bool has_ended_ = false;
};

}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_TIMED_SETUP_H_
