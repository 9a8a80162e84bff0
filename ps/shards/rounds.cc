#include "ps/shards/rounds.h"

#include <iterator>
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
  absl::MutexLock lock(&state_->mu);
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
  absl::MutexLock lock(&state_->mu);
  const bool is_left =
      state_->is_stopped || state_->wants_thread || rounds == kMaxHelp;
  state_->is_at_work = state_->wants_pump && !is_left;
  if (state_->is_at_work) state_->wants_pump = false;
  return state_->is_at_work;
}

void Rounds::Help() {
  if (!BeginHelp()) return;
  ReplicaState::Due after;
  int rounds = 0;
  do {
    DoOne(Feeder::Wait::kLeaveToThread, &after);
  } while (GoOnHelping(++rounds));
  for (const auto& each : after) each();
  after.clear();  // Stop() waits for the end of what it owns
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
    absl::MutexLock lock(&state_->mu);
    state_->mu.AwaitWithTimeout(absl::Condition(&is_wanted), kTick);
    state_->mu.Await(absl::Condition(&is_free));
    if (state_->is_stopped) return false;
    state_->wants_pump = state_->wants_thread = false;
    state_->is_at_work = true;
  }
  ReplicaState::Due after;
  DoOne(Feeder::Wait::kWait, &after);
  {
    absl::MutexLock lock(&state_->mu);
    state_->is_at_work = false;
  }
  for (const auto& each : after) each();
  return true;
}

void Rounds::DoOne(Feeder::Wait wait, ReplicaState::Due* after) {
  const absl::Time now = BootNow();
  if (now >= tick_) {
    tick_ = now + kTick;
    calls_->ExpireWorkers();
    feeder_->PollApplied();
  }
  ReplicaState::RoundWork work;
  calls_->Collect(now, &work);
  log_sender_->Collect(now, &work.now);
  feeder_->Collect(now, wait, &work);
  snapshot_sender_->Collect(now, &work.now);
  for (const auto& each : work.now) each();
  if (!work.now.empty()) state_->Pump();
  after->insert(after->end(), std::make_move_iterator(work.after.begin()),
                std::make_move_iterator(work.after.end()));
}

}  // namespace penstock::ps
