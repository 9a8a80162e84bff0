#include "collectives/host/watch.h"

#include <poll.h>

#include <atomic>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "collectives/fault.h"
#include "collectives/host/control.h"
#include "collectives/host/meeting.h"
#include "collectives/host/thread_state.h"
#include "collectives/interruption.h"
#include "transport/base/mutex.h"
#include "transport/base/steady_time.h"

namespace penstock::collectives {
namespace {

// Returns the fault of a `failure` word.
Fault FaultOf(uint32_t failure) { return static_cast<Fault>(failure & 0xFF); }

}  // namespace

absl::Status Watch::Ready() {
  if (has_ended_.load(std::memory_order_acquire)) {
    base::MutexLock lock(&mu_);
    return status_;
  }
  if (!aborted_.load(std::memory_order_relaxed)) return absl::OkStatus();
  return End(Fault::kAborted, own_rank(), "");
}

absl::Status Watch::Ended() {
  absl::Status ready = Ready();
  if (!ready.ok()) return ready;
  for (int rank = 0; rank < ranks(); ++rank) {
    const uint32_t failure = ReportOf(rank);
    if (failure == 0 || FaultOf(failure) == Fault::kMismatch) continue;
    return EndAsReported(rank, failure);
  }
  return absl::OkStatus();
}

uint32_t Watch::ReportOf(int rank) const {
  const auto& peer = members_->peers[rank];
  return peer == nullptr
             ? 0
             : peer->control().failure.load(std::memory_order_acquire);
}

absl::Status Watch::EndAsReported(int rank, uint32_t failure) {
  const Fault fault = FaultOf(failure);
  const auto culprit = static_cast<int>(failure >> 8);
  return End(fault, culprit,
             absl::StrCat("rank ", culprit, " ", Text(fault), ", as rank ",
                          rank, " reports"));
}

absl::Status Watch::Look(Wait* wait) {
  if (IsWaitInterrupted()) Abort();
  absl::Status ready = Ready();
  if (!ready.ok()) return ready;
  // Checks for reports first: if a rank ends because another rank has died, the
  // death is the cause.
  absl::Status status = LookForReports(wait);
  if (status.ok()) status = LookForDeaths(wait);
  if (status.ok()) status = LookForSilence(wait);
  if (!status.ok()) return status;
  if (base::SteadyNow() - wait->begun < timeout_) return absl::OkStatus();
  return End(Fault::kLate, wait->late,
             absl::StrCat("rank ", wait->late,
                          " did not call the operation "
                          "within ",
                          absl::FormatDuration(timeout_)));
}

// Returns the failure that a peer has reported, or OK. Also checks ranks that
// have reached this call, because they may have failed later. If all ranks have
// reached it by now, the report is about a later call.
absl::Status Watch::LookForReports(Wait* wait) {
  for (int rank = 0; rank < ranks(); ++rank) {
    const uint32_t failure = ReportOf(rank);
    if (failure == 0) continue;
    if (AllCame(*wait)) return absl::OkStatus();
    return EndAsReported(rank, failure);
  }
  return absl::OkStatus();
}

// Checks for ranks that have left or died. A rank may reach the call, and then
// leave or end, between two checks of its posts. After each sign of an end,
// this function therefore checks the posts again.
absl::Status Watch::LookForDeaths(Wait* wait) {
  for (int rank = wait->late; rank < ranks(); ++rank) {
    if (wait->came(rank)) continue;
    const PeerMember& peer = *members_->peers[rank];
    if (peer.control().left.load(std::memory_order_acquire) != 0) {
      if (wait->came(rank)) continue;
      // Checks for reports, because the rank may have failed before it left.
      const absl::Status reported = LookForReports(wait);
      return reported.ok() ? End(Fault::kLeft, rank, "") : reported;
    }
    pollfd life = {peer.life_fd(), POLLIN, 0};
    if (poll(&life, 1, 0) > 0 && !wait->came(rank)) {
      return End(Fault::kDied, rank, "");
    }
  }
  return absl::OkStatus();
}

absl::Status Watch::LookForSilence(Wait* wait) {
  const absl::Time now = base::SteadyNow();
  // Starts to count the silence now if this process itself did not run for a
  // while.
  const bool begins = now - wait->last_look > kSilence / 4;
  wait->last_look = now;
  wait->pulses.resize(ranks());
  for (int rank = wait->late; rank < ranks(); ++rank) {
    if (wait->came(rank)) continue;
    const uint64_t heartbeat = members_->peers[rank]->control().heartbeat.load(
        std::memory_order_relaxed);
    Pulse& pulse = wait->pulses[rank];
    if (begins || heartbeat != pulse.heartbeat) {
      pulse = {heartbeat, now};
    } else if (CountsAsStopped(rank, now - pulse.since)) {
      return End(Fault::kSilent, rank, "");
    }
  }
  return absl::OkStatus();
}

bool Watch::CountsAsStopped(int rank, absl::Duration silence) const {
  if (silence < silence_) return false;
  const Control& control = members_->peers[rank]->control();
  const absl::optional<ThreadState> state =
      StateOfThread(control.beating_thread.load(std::memory_order_acquire));
  // Compares start times, because another thread may have this number here if
  // the peer's PID namespace differs.
  const bool is_seen =
      state.has_value() &&
      state->started == control.beating_since.load(std::memory_order_relaxed);
  if (is_seen && state->letter == 'R') return false;
  return !is_seen || state->letter != 'D' || silence >= kDiskSilence;
}

absl::Status Watch::End(Fault fault, int culprit, const std::string& detail) {
  absl::Status status;
  {
    base::MutexLock lock(&mu_);
    if (status_.ok()) status_ = StatusOf(fault, culprit, detail);
    status = status_;
  }
  // Reports first: once an operation has returned an error, its caller may
  // change memory that peers read in place.
  Report(fault, culprit);
  has_ended_.store(true, std::memory_order_release);
  return status;
}

void Watch::Report(Fault fault, int culprit) {
  uint32_t none = 0;
  members_->own->control().failure.compare_exchange_strong(
      none, static_cast<uint32_t>(fault) | static_cast<uint32_t>(culprit) << 8,
      std::memory_order_release);
  // Orders the report before the caller's writes.
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

bool Watch::AllCame(const Wait& wait) const {
  for (int rank = wait.late; rank < ranks(); ++rank) {
    if (!wait.came(rank)) return false;
  }
  return true;
}

void Watch::Abort() {
  aborted_.store(true, std::memory_order_relaxed);
  Report(Fault::kAborted, own_rank());
}

}  // namespace penstock::collectives
