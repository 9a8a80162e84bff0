#include "transport/grpc/polling/polling_engine.h"

#include <grpc/grpc.h>
#include <sched.h>

#include <algorithm>

#include "absl/time/time.h"
#include "src/core/lib/iomgr/ev_epoll1_linux.h"
#include "src/core/lib/iomgr/ev_posix.h"
#include "src/core/lib/iomgr/exec_ctx.h"
#include "transport/base/steady_time.h"
#include "transport/grpc/internal/grpc_abi.h"
#include "transport/grpc/internal/mismatch.h"
#include "transport/grpc/polling/before_wait.h"
#include "transport/grpc/polling/epoll_set.h"
#include "transport/grpc/polling/left_input.h"
#include "transport/grpc/polling/polling_mode.h"
#include "transport/grpc/polling/sleeper.h"
#include "transport/grpc/polling/socket_spin.h"
#include "transport/grpc/polling/socket_turn.h"
#include "transport/grpc/polling/socket_users.h"
#include "transport/progress/left_input.h"
#include "transport/progress/poll_set.h"
#include "transport/progress/real_time.h"
#include "transport/progress/spin_pace.h"
#include "transport/progress/spin_policy.h"
#include "transport/progress/turns.h"

namespace penstock {
namespace core {
namespace {

grpc_event_engine_vtable g_engine;  // a copy of epoll1's, with our pollset_work
const grpc_event_engine_vtable* g_inner = nullptr;
size_t g_mutex_offset = 0;  // the end of epoll1's part of a pollset

gpr_mu** MutexOf(grpc_pollset* pollset) {
  return reinterpret_cast<gpr_mu**>(reinterpret_cast<char*>(pollset) +
                                    g_mutex_offset);
}

using Source = progress::Turns::Source;
progress::Turns g_turns;

// The lost cores of this thread. All threads of gRPC share the policy, but each
// thread records its own losses.
thread_local progress::CoreLosses t_losses;

progress::SpinPolicy* Policy() {
  static auto* const policy = new progress::SpinPolicy(PollingModeOfProcess());
  return policy;
}

// Returns the spin policy for sockets. Paths have a policy of their own: a
// policy learns from the times of its waits, and events of sockets come later
// than input of paths.
progress::SpinPolicy* SocketPolicy() {
  static auto* const policy = new progress::SpinPolicy(PollingModeOfProcess());
  return policy;
}

EpollSet* Sockets() {
  static auto* const set = new EpollSet(*g_inner);
  return set;
}

// The arguments of pollset_work().
struct Wait {
  grpc_pollset* pollset;
  gpr_mu* mu;
  grpc_pollset_worker** worker;
};

// Polls the sockets if their turn has come. Returns true if it has polled them.
// Polls none while another thread sleeps in epoll, because that thread handles
// events immediately, and this thread would wait for 30 to 130 us in the queue
// of epoll1's workers.
bool LookAtSockets(const Wait& wait, absl::Time now) {
  if (Sleeper::Any() || !g_turns.Take(Source::kSockets, now)) return false;
  if (TakeSocketTurn(*g_inner, wait.pollset, wait.mu, wait.worker)) {
    g_turns.MakeDue(Source::kSockets);
  }
  return true;
}

enum class Spun {
  kNot,    // did not spin, because other threads need the core
  kIdle,   // spun without finding work
  kReady,  // spun, and the caller has work
};

// Polls until the caller has work or `budget` has passed. Yields the core
// sometimes, because other threads, for example the peer's, may need it.
Spun SpinOnce(const Wait& wait, absl::Time start, absl::Duration budget,
              bool is_busy) {
  thread_local progress::SpinPace pace;
  progress::PollSet* set = progress::PollSet::Get();
  grpc_core::ExecCtx* context = grpc_core::ExecCtx::Get();
  progress::RealTimeSpin spin(
      is_busy, progress::RealTimeCores::OfProcess(set->max_spinners()));
  bool all = g_turns.Take(Source::kColdPaths, start);
  pace.Resume(start);
  for (int polls = 1;; ++polls) {
    all |= polls % progress::SpinPace::kMostRounds == 0;
    if (all) {
      set->PollAll();
    } else {
      set->PollHot();
    }
    all = false;
    context->Flush();
    bool ready = context->IsReadyToFinish();
    if (!pace.OnRound() && !ready) continue;
    const absl::Time now = base::SteadyNow();
    pace.Look(now);
    if (LookAtSockets(wait, now)) ready = context->IsReadyToFinish();
    if (ready) return Spun::kReady;
    if (now - start >= budget) return Spun::kIdle;
    if (!spin.MayGoOn(progress::IsRealTime(now)) || Policy()->EndsSpins(now)) {
      return Spun::kNot;
    }
    sched_yield();
    const absl::Time back = base::SteadyNow();
    Policy()->RecordYield(back - now, back, &t_losses);
    pace.Resume(back);
  }
}

Spun Spin(const Wait& wait, absl::Time start, absl::Duration budget,
          bool is_busy) {
  progress::PollSet* set = progress::PollSet::Get();
  Spun result = Spun::kNot;
  while (set->BeginSpin()) {
    result = SpinOnce(wait, start, budget, is_busy);
    const bool more = set->EndSpin();
    if (!more) return result;
    // Records that input arrived before the path was armed again. No doorbell
    // rings for such input.
    if (result == Spun::kReady) {
      LeaveInput();
      return result;
    }
    start = base::SteadyNow();
  }
  return result;
}

// Returns true if the designated poller may spin for sockets. Returns false
// while the policy for paths rests: threads have lost their cores by spinning,
// and would also lose them by spinning for sockets.
bool MaySpinForSockets() {
  return PollingModeOfProcess() != progress::PollingMode::kEvent &&
         SocketUser::Any() && !Policy()->Rests(base::SteadyNow());
}

// Lets the designated poller spin before it sleeps in epoll.
grpc_error_handle SpinAndSleep(const Wait& wait,
                               grpc_core::Timestamp deadline) {
  const SpinSources sources = {
      [] { return Sockets()->MayHaveEvents(); },
      progress::PollSet::Get(),
      SocketPolicy(),
  };
  SocketSpin spin(sources, wait.worker, deadline);
  return g_inner->pollset_work(wait.pollset, spin.worker(), spin.deadline());
}

// Sleeps in epoll until an event, a kick or the deadline.
grpc_error_handle Sleep(const Wait& wait, grpc_core::Timestamp deadline) {
  grpc_core::ExecCtx* context = grpc_core::ExecCtx::Get();
  progress::LeftInput* left = LeftInputOfProcess();
  if (!left->BeginSleep()) {
    gpr_mu_unlock(wait.mu);
    PollLeftInput();
    // Polls the sockets in turn even if a path always has input.
    LookAtSockets(wait, base::SteadyNow());
    context->Flush();
    gpr_mu_lock(wait.mu);
    return absl::OkStatus();
  }
  Sleeper sleeper;
  grpc_error_handle error =
      MaySpinForSockets()
          ? SpinAndSleep(wait, deadline)
          : g_inner->pollset_work(wait.pollset, wait.worker, deadline);
  if (sleeper.is_scheduled()) {
    gpr_mu_unlock(wait.mu);
    context->Flush();
    gpr_mu_lock(wait.mu);
  }
  left->EndSleep();
  return error;
}

grpc_error_handle Work(grpc_pollset* pollset, grpc_pollset_worker** worker,
                       grpc_core::Timestamp deadline) {
  grpc_core::ExecCtx* context = grpc_core::ExecCtx::Get();
  if (BeforeWait::IsSet()) {
    gpr_mu* const mu = *MutexOf(pollset);
    gpr_mu_unlock(mu);
    BeforeWait::Run();
    context->Flush();
    gpr_mu_lock(mu);
    return absl::OkStatus();  // the caller may have its completion now
  }
  if (deadline <= context->Now()) {
    return g_inner->pollset_work(pollset, worker, deadline);
  }
  const Wait wait = {pollset, *MutexOf(pollset), worker};
  if (progress::PollSet::Get()->empty()) return Sleep(wait, deadline);
  const absl::Time start = base::SteadyNow();
  const absl::Duration wanted = Policy()->Budget(start);
  const bool is_busy = wanted == absl::InfiniteDuration();
  const absl::Duration budget =
      std::min(wanted, absl::Nanoseconds(progress::SpinPolicy::kMaxNanos));
  Spun spun = Spun::kNot;
  if (budget > absl::ZeroDuration()) {
    // Unlocks while polling. This is safe: the pollset remembers a kick that
    // arrives while this thread is not in epoll.
    gpr_mu_unlock(wait.mu);
    spun = Spin(wait, start, budget, is_busy);
    gpr_mu_lock(wait.mu);
    if (spun == Spun::kReady) {
      Policy()->Record(true, base::SteadyNow() - start);
      return absl::OkStatus();
    }
    context->InvalidateNow();
  }
  // In busy mode, returns without sleeping, because the thread has polled the
  // sockets between its other polls. Sleeps if other threads need the core.
  if (spun != Spun::kNot && is_busy) return absl::OkStatus();
  grpc_error_handle error = Sleep(wait, deadline);
  context->InvalidateNow();
  Policy()->Record(context->Now() < deadline, base::SteadyNow() - start);
  return error;
}

void InitPollset(grpc_pollset* pollset, gpr_mu** mu) {
  g_inner->pollset_init(pollset, mu);
  *MutexOf(pollset) = *mu;
}

void ShutDownEngine() {
  Sockets()->Forget();
  g_inner->shutdown_engine();
}

bool Wrap() {
  // Fails if gRPC is initialized already, because gRPC chooses its engine
  // during initialization.
  if (GrpcMismatch() != nullptr || grpc_is_initialized()) return false;
  g_inner = &grpc_ev_epoll1_posix;
  g_engine = *g_inner;
  constexpr size_t kAlign = 16;
  g_mutex_offset = (g_inner->pollset_size + kAlign - 1) / kAlign * kAlign;
  g_engine.pollset_size = g_mutex_offset + kAlign;
  g_engine.pollset_init = InitPollset;
  g_engine.pollset_work = Work;
  g_engine.shutdown_engine = ShutDownEngine;
  grpc_register_event_engine_factory(&g_engine, /*add_at_head=*/true);
  return true;
}

const bool g_wrapped = Wrap();

}  // namespace

bool PollingIsWrapped() { return g_wrapped; }

}  // namespace core
}  // namespace penstock
