#include "transport/grpc/polling/socket_turn.h"

#include <utility>

#include "absl/time/time.h"
#include "src/core/lib/gprpp/time.h"
#include "src/core/lib/iomgr/closure.h"
#include "src/core/lib/iomgr/exec_ctx.h"
#include "transport/base/steady_time.h"
#include "transport/grpc/internal/grpc_abi.h"
#include "transport/progress/turns.h"

namespace penstock {
namespace core {
namespace {

// Detects if a call of pollset_work() handled an event, which gRPC does not
// report. Schedules a closure of its own, the mark, before the call. The
// closures of an event are scheduled later. Therefore a closure that follows
// the mark in the ExecCtx's list proves an event.
class EventMark {
 public:
  EventMark() { GRPC_CLOSURE_INIT(&closure_, &EventMark::Run, this, nullptr); }
  EventMark(const EventMark&) = delete;
  EventMark& operator=(const EventMark&) = delete;

  // Schedules the mark, unless it is still scheduled.
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
    // Forgets the cached time. gRPC read the clock before it polled for events,
    // and the process may have been stopped since.
    grpc_core::ExecCtx::Get()->InvalidateNow();
  }

  grpc_closure closure_;
  bool is_set_ = false;
  bool saw_event_ = false;
};

// Detects if pollset_work() asks the kernel for events. gRPC asks once it has
// handled all events of the kernel's last answer. Just before, gRPC reads the
// time, to compute the timeout. This object is the thread's source of time, and
// so detects that gRPC reads the time.
class KernelWatch : public grpc_core::Timestamp::ScopedSource {
 public:
  // `worker` is the argument of pollset_work().
  explicit KernelWatch(grpc_pollset_worker** worker)
      : worker_(worker != nullptr ? worker : &own_worker_) {}

  grpc_pollset_worker** worker() { return worker_; }
  grpc_core::Timestamp Now() override {
    // Excludes closures, which also read the time, but only after gRPC has
    // reset the worker.
    if (*worker_ != nullptr) asked_ = true;
    return previous()->Now();
  }
  // Returns true if gRPC has asked since the last call.
  bool TakeAsked() { return std::exchange(asked_, false); }

 private:
  grpc_pollset_worker* own_worker_ = nullptr;
  grpc_pollset_worker** const worker_;
  bool asked_ = false;
};

// The number of consecutive calls that ask the kernel and find no event, after
// which a turn ends. One such call proves nothing: an event for which no code
// waits schedules no closure, and the next call may handle further events of
// the same answer. A connection that receives directly causes such an event
// whenever bytes arrive.
constexpr int kCallsWithoutEvent = 2;

}  // namespace

bool TakeSocketTurn(const grpc_event_engine_vtable& engine,
                    grpc_pollset* pollset, gpr_mu* mu,
                    grpc_pollset_worker** worker) {
  const absl::Time end =
      base::SteadyNow() + absl::Nanoseconds(progress::Turns::kTurnNanos);
  EventMark mark;
  KernelWatch watch(worker);
  bool more = true;
  gpr_mu_lock(mu);
  for (int without_event = 0; more;) {
    mark.Set();
    const grpc_error_handle error = engine.pollset_work(
        pollset, watch.worker(), grpc_core::Timestamp::ProcessEpoch());
    const bool asked = watch.TakeAsked();
    if (!error.ok())
      break;               // the thread that sleeps in epoll reports the error
    if (!mark.is_set()) {  // otherwise a kick ended the call before its poll
      without_event = asked && !mark.saw_event() ? without_event + 1 : 0;
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
