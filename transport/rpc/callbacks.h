// Runs the callbacks of a connection one after another.

#ifndef PENSTOCK_TRANSPORT_RPC_CALLBACKS_H_
#define PENSTOCK_TRANSPORT_RPC_CALLBACKS_H_

#include <functional>
#include <utility>
#include <vector>

#include "transport/base/mutex.h"
#include "transport/connection/connection.h"
#include "transport/progress/event_loop.h"
#include "transport/rpc/call.h"

namespace penstock {
namespace rpc {

// A queue of callbacks. One thread at a time runs callbacks, without locks and
// in their order. If `thread` is kAny, the thread that brought the input runs
// them. Otherwise the loop's thread runs them. Thread-safe, as the functions
// say.
class Callbacks {
 public:
  // Refers to the arguments, which must outlive this object. `mu` is the lock
  // of `owner`.
  Callbacks(connection::Connection* owner, base::Mutex* mu,
            progress::EventLoop* loop, CallbackThread thread)
      : owner_(owner), mu_(mu), loop_(loop), thread_(thread) {}

  // Adds a callback. Call under the lock, and Begin() before unlocking.
  void Add(std::function<void()> callback) {
    mu_->AssertHeld();
    queue_.push_back(std::move(callback));
  }
  // Returns true if the caller must call Run() after unlocking. Returns false
  // if another thread runs the callbacks. `may_run_here` is false if the caller
  // may hold locks that callbacks take. Call under the lock.
  bool Begin(bool may_run_here);
  // Runs the callbacks after a successful Begin(), without the lock.
  void Run();

  // Returns true if a callback of any connection runs on this thread.
  static bool AreRunningHere();

 private:
  void PostLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(*mu_);
  void RunPosted();

  connection::Connection* const owner_;
  base::Mutex* const mu_;
  progress::EventLoop* const loop_;
  const CallbackThread thread_;
  std::vector<std::function<void()>> queue_ ABSL_GUARDED_BY(*mu_);
  bool is_running_ ABSL_GUARDED_BY(*mu_) = false;  // a thread runs callbacks
  bool is_posted_ ABSL_GUARDED_BY(*mu_) = false;  // the loop will run callbacks
};

}  // namespace rpc
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_RPC_CALLBACKS_H_
