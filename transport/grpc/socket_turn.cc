#include "transport/grpc/socket_turn.h"

#include "absl/time/time.h"
#include "src/core/lib/iomgr/closure.h"
#include "src/core/lib/iomgr/exec_ctx.h"
#include "transport/base/steady_time.h"
#include "transport/grpc/grpc_abi.h"
#include "transport/progress/turns.h"

namespace penstock {
namespace core {
namespace {

// A closure that runs directly before the closures of the event that the next
// pollset_work() handles. gRPC does not report if there was an event. The mark
// detects an event by a closure after its own in the ExecCtx's list.
class EventMark {
 public:
  EventMark() { GRPC_CLOSURE_INIT(&closure_, &EventMark::Run, this, nullptr); }
  EventMark(const EventMark&) = delete;
  EventMark& operator=(const EventMark&) = delete;

  // Schedules the closure, unless it is still scheduled.
  void Set() {
    if (is_set_) return;
    is_set_ = true;
    grpc_core::ExecCtx::Run(DEBUG_LOCATION, &closure_, absl::OkStatus());
  }
  bool is_set() const { return is_set_; }
  // Returns true if closures followed the mark in its latest run.
  bool saw_event() const { return saw_event_; }

 private:
  static void Run(void* self, grpc_error_handle) {
    auto* mark = static_cast<EventMark*>(self);
    mark->is_set_ = false;
    mark->saw_event_ = mark->closure_.next_data.next != nullptr;
    // gRPC read the clock before it polled for events, and the process may have
    // been stopped in between.
    grpc_core::ExecCtx::Get()->InvalidateNow();
  }

  grpc_closure closure_;
  bool is_set_ = false;
  bool saw_event_ = false;
};

// The number of consecutive calls without an event that end the turn. One such
// call proves nothing: an event for which nobody waits schedules no closure,
// and more events may follow. Two such events in a row are rare.
constexpr int kCallsWithoutEvent = 2;

}  // namespace

bool TakeSocketTurn(const grpc_event_engine_vtable& engine,
                    grpc_pollset* pollset, gpr_mu* mu,
                    grpc_pollset_worker** worker) {
  const absl::Time end =
      base::SteadyNow() + absl::Nanoseconds(progress::Turns::kTurnNanos);
  EventMark mark;
  bool more = true;
  gpr_mu_lock(mu);
  for (int without_event = 0; more;) {
    mark.Set();
    const grpc_error_handle error = engine.pollset_work(
        pollset, worker, grpc_core::Timestamp::ProcessEpoch());
    if (!error.ok())
      break;               // the thread that sleeps in epoll reports the error
    if (!mark.is_set()) {  // otherwise a kick ended the call before its poll
      without_event = mark.saw_event() ? 0 : without_event + 1;
      if (without_event == kCallsWithoutEvent) more = false;
    }
    if (more && base::SteadyNow() >= end) break;
  }
  gpr_mu_unlock(mu);
  if (mark.is_set()) grpc_core::ExecCtx::Get()->Flush();
  return more;
}

}  // namespace core
}  // namespace penstock
