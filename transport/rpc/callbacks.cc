#include "transport/rpc/callbacks.h"

namespace penstock {
namespace rpc {
namespace {

// Limits the rounds of callbacks that a thread runs before it polls again.
// Callbacks that a callback adds run in the next round.
constexpr int kRounds = 4;

// The number of Run() calls on this thread's stack.
thread_local int running = 0;

}  // namespace

bool Callbacks::Begin(bool may_run_here) {
  mu_->AssertHeld();
  if (queue_.empty()) return false;
  if (owner_->IsForeign()) {
    // Posts the callbacks to a loop of the child, because the thread that runs
    // callbacks exists only in the parent.
    for (std::function<void()>& callback : queue_) {
      owner_->executor()->Post(std::move(callback));
    }
    queue_.clear();
    return false;
  }
  if (is_running_) return false;
  if (may_run_here && (thread_ == CallbackThread::kAny || loop_->IsCurrent())) {
    is_running_ = true;
    return true;
  }
  PostLocked();
  return false;
}

void Callbacks::PostLocked() {
  if (std::exchange(is_posted_, true)) return;
  owner_->Ref();
  owner_->executor()->Post([this] {
    connection::Connection* const owner = owner_;
    RunPosted();
    owner->Unref();  // perhaps the last reference
  });
}

void Callbacks::RunPosted() {
  {
    base::MutexLock lock(mu_);
    is_posted_ = false;
    if (queue_.empty() || std::exchange(is_running_, true)) return;
  }
  Run();
}

void Callbacks::Run() {
  std::vector<std::function<void()>> callbacks;
  ++running;
  for (int round = 0;; ++round) {
    {
      base::MutexLock lock(mu_);
      if (queue_.empty() || round == kRounds) {
        is_running_ = false;
        if (!queue_.empty()) PostLocked();
        break;
      }
      callbacks.swap(queue_);
    }
    for (std::function<void()>& callback : callbacks) {
      callback();
      callback = nullptr;
    }
    callbacks.clear();
  }
  --running;
}

bool Callbacks::AreRunningHere() { return running > 0; }

}  // namespace rpc
}  // namespace penstock
