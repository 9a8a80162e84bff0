#include "ps/shards/rounds.h"

#include <utility>

#include "ps/shards/boot_time.h"

namespace penstock::ps {

Rounds::Rounds(std::shared_ptr<ReplicaState> state,
               std::shared_ptr<WorkerCalls> calls,
               std::shared_ptr<LogSender> log_sender,
               std::shared_ptr<Feeder> feeder,
               std::shared_ptr<SnapshotSender> snapshot_sender)
    : state_(std::move(state)),
      calls_(std::move(calls)),
      log_sender_(std::move(log_sender)),
      feeder_(std::move(feeder)),
      snapshot_sender_(std::move(snapshot_sender)),
      tick_(BootNow()) {}

bool Rounds::BeginHelp() {
  base::SteadyMutexLock lock(&state_->mu);
  if (state_->is_stopped) return false;
  if (state_->is_at_work || state_->wants_thread) {
    state_->wants_pump = true;
    return false;
  }
  state_->is_at_work = true;
  ++state_->tracked;
  return true;
}

bool Rounds::GoOnHelping(int rounds) {
  base::SteadyMutexLock lock(&state_->mu);
  const bool is_left =
      state_->is_stopped || state_->wants_thread || rounds == kMaxHelp;
  state_->is_at_work = state_->wants_pump && !is_left;
  if (state_->is_at_work) state_->wants_pump = false;
  return state_->is_at_work;
}

void Rounds::Help() {
  if (!BeginHelp()) return;
  int rounds = 0;
  do {
    DoOne(Feeder::Wait::kLeaveToThread);
  } while (GoOnHelping(++rounds));
  state_->EndTracked();
}

bool Rounds::AwaitOne() {
  const auto is_wanted = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_->mu) {
    return !state_->is_at_work &&
           (state_->wants_pump || state_->wants_thread || state_->is_stopped);
  };
  const auto is_free = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_->mu) {
    return !state_->is_at_work;
  };
  {
    base::SteadyMutexLock lock(&state_->mu);
    state_->mu.AwaitFor(kTick, is_wanted);
    state_->mu.Await(is_free);
    if (state_->is_stopped) return false;
    state_->wants_pump = state_->wants_thread = false;
    state_->is_at_work = true;
  }
  DoOne(Feeder::Wait::kWait);
  base::SteadyMutexLock lock(&state_->mu);
  state_->is_at_work = false;
  return true;
}

void Rounds::DoOne(Feeder::Wait wait) {
  const absl::Time now = BootNow();
  if (now >= tick_) {
    tick_ = now + kTick;
    calls_->ExpireWorkers();
    feeder_->PollApplied();
  }
  ReplicaState::Due due;
  calls_->Collect(now, &due);
  log_sender_->Collect(now, &due);
  feeder_->Collect(now, wait, &due);
  snapshot_sender_->Collect(now, &due);
  for (const auto& each : due) each();
  if (!due.empty()) state_->Pump();
}

}  // namespace penstock::ps
