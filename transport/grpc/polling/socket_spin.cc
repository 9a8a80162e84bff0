#include "transport/grpc/polling/socket_spin.h"

#include <sched.h>

#include <algorithm>

#include "src/core/lib/iomgr/exec_ctx.h"
#include "transport/base/steady_time.h"
#include "transport/grpc/polling/left_input.h"
#include "transport/progress/real_time.h"

namespace penstock {
namespace core {
namespace {

// Limits one sleep. With an infinite deadline, gRPC would not read the time,
// and there would be no spin. When a finite deadline passes, pollset_work()
// returns without an event, and its caller calls again.
constexpr grpc_core::Duration kLongestSleep = grpc_core::Duration::Hours(1);

}  // namespace

SocketSpin::SocketSpin(const SpinSources& sources, grpc_pollset_worker** worker,
                       grpc_core::Timestamp deadline)
    : sources_(sources),
      worker_(worker != nullptr ? worker : &own_worker_),
      deadline_(std::min(deadline, previous()->Now() + kLongestSleep)) {
  GRPC_CLOSURE_INIT(&on_wake_up_, &SocketSpin::OnWakeUp, this, nullptr);
}

grpc_core::Timestamp SocketSpin::Now() {
  // Spins only between the designation of a poller and the handling of events,
  // when the worker is set. Closures run later, and read the time, too.
  if (has_begun_ || *worker_ == nullptr) return previous()->Now();
  has_begun_ = true;
  const Spun spun = Spin();
  grpc_core::ExecCtx* context = grpc_core::ExecCtx::Get();
  context->InvalidateNow();
  switch (spun) {
    case Spun::kNothing:
      // Schedules OnWakeUp(), which records the length of the wait. OnWakeUp()
      // runs before the closures of the event that ends the sleep.
      grpc_core::ExecCtx::Run(DEBUG_LOCATION, &on_wake_up_, absl::OkStatus());
      break;
    case Spun::kEvents:
      sources_.policy->Record(true, base::SteadyNow() - start_);
      break;
    case Spun::kPaths:
      return deadline_;
  }
  return previous()->Now();
}

SocketSpin::Spun SocketSpin::Spin() {
  start_ = base::SteadyNow();
  const absl::Duration budget = sources_.policy->Budget(start_);
  if (budget == absl::ZeroDuration() || !sources_.paths->BeginSpin()) {
    return Spun::kNothing;
  }
  const Spun spun = SpinFor(budget);
  if (!sources_.paths->EndSpin()) return spun;
  // Records that input arrived before the paths were armed again. No doorbell
  // rings for such input.
  LeaveInput();
  return Spun::kPaths;
}

SocketSpin::Spun SocketSpin::SpinFor(absl::Duration budget) {
  const absl::Duration left = absl::Milliseconds(
      (deadline_ - grpc_core::ExecCtx::Get()->Now()).millis());
  const absl::Time end = start_ + std::min(budget, left);
  progress::RealTimeSpin spin(
      budget == absl::InfiniteDuration(),
      progress::RealTimeCores::OfProcess(sources_.paths->max_spinners()));
  for (;;) {
    if (sources_.may_have_events()) return Spun::kEvents;
    if (sources_.paths->PollHot()) return Spun::kPaths;
    const absl::Time now = base::SteadyNow();
    if (now >= end || !spin.MayGoOn(progress::IsRealTime(now)) ||
        sources_.policy->EndsSpins(now)) {
      return Spun::kNothing;
    }
    sched_yield();
    const absl::Time back = base::SteadyNow();
    sources_.policy->RecordCostlyYield(back - now, back);
  }
}

void SocketSpin::OnWakeUp(void* self, grpc_error_handle) {
  auto* spin = static_cast<SocketSpin*>(self);
  const bool found = grpc_core::ExecCtx::Get()->Now() < spin->deadline_;
  spin->sources_.policy->Record(found, base::SteadyNow() - spin->start_);
}

}  // namespace core
}  // namespace penstock
