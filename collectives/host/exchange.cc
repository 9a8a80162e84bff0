#include "collectives/host/exchange.h"

#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "collectives/call.h"
#include "collectives/fault.h"
#include "collectives/host/control.h"
#include "transport/base/steady_time.h"
#include "transport/progress/fork_count.h"

namespace penstock::collectives {
namespace {

// The longest sleep between two looks for faults.
constexpr timespec kNap = {0, 20 * 1000 * 1000};
// The looks at the peers between two looks at the clock, about 1 us.
constexpr int kLooksPerClock = 64;

static_assert(Control::kWords == kCallWords, "a post has room for a call");

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Works on memory that is mapped read-only.
void FutexWait(const std::atomic<uint32_t>& word, uint32_t value) {
  syscall(SYS_futex, &word, FUTEX_WAIT, value, &kNap, nullptr, 0);
}

void FutexWake(const std::atomic<uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace

Exchange::Exchange(Members members, progress::PollingMode polling,
                   absl::Duration timeout)
    : members_(std::move(members)),
      timeout_(timeout),
      fork_count_(progress::ForkCount()),
      policy_(polling) {}

const uint8_t* Exchange::SlotOf(int rank) const {
  const auto& peer = members_.peers[rank];
  return peer == nullptr ? members_.own->slot(posts_) : peer->slot(posts_);
}

uint64_t Exchange::PlaceOf(const void* data, size_t bytes) const {
  const auto begin = reinterpret_cast<uintptr_t>(members_.own->pool());
  const auto at = reinterpret_cast<uintptr_t>(data);
  const bool is_inside = at >= begin && bytes <= pool_bytes() &&
                         at - begin <= pool_bytes() - bytes;
  return is_inside ? at - begin + 1 : 0;
}

const uint8_t* Exchange::OperandOf(int rank, size_t bytes) const {
  const auto& peer = members_.peers[rank];
  const Control& control =
      peer == nullptr ? members_.own->control() : peer->control();
  const uint64_t place =
      control.places[posts_ % 2].load(std::memory_order_relaxed);
  if (place == 0 || bytes > pool_bytes() || place - 1 > pool_bytes() - bytes) {
    return nullptr;
  }
  const uint8_t* const pool =
      peer == nullptr ? members_.own->pool() : peer->pool();
  return pool + place - 1;
}

absl::Status Exchange::CheckOwner() const {
  if (progress::ForkCount() == fork_count_) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "the group belongs to the parent of this process");
}

absl::Status Exchange::Ready() {
  absl::Status own = CheckOwner();
  if (!own.ok()) return own;
  if (!status_.ok()) return status_;
  if (!aborted_.load(std::memory_order_relaxed)) return absl::OkStatus();
  return End(Fault::kAborted, rank(), "");
}

absl::Status Exchange::Meet(const CallWords& call, uint64_t place) {
  absl::Status ready = Ready();
  if (!ready.ok()) return ready;
  Publish(call, place);
  Wait wait;
  wait.number = posts_;
  if (!AllCame(&wait)) {
    wait.begun = base::SteadyNow();
    if (!Spin(&wait)) {
      absl::Status slept = Sleep(&wait);
      if (!slept.ok()) return slept;
    }
    policy_.Record(true, base::SteadyNow() - wait.begun);
  }
  return Compare(call);
}

void Exchange::Publish(const CallWords& call, uint64_t place) {
  Control& own = members_.own->control();
  ++posts_;
  for (int i = 0; i < kCallWords; ++i) {
    own.calls[posts_ % 2][i].store(call[i], std::memory_order_relaxed);
  }
  own.places[posts_ % 2].store(place, std::memory_order_relaxed);
  // Ordered before the look at `sleeping`, as a sleeper's look at `posted` is
  // ordered after its store: one of the two sees the other.
  own.posted.store(posts_, std::memory_order_seq_cst);
  for (const auto& peer : members_.peers) {
    if (peer != nullptr &&
        peer->control().sleeping.load(std::memory_order_seq_cst) != 0) {
      FutexWake(own.posted);
      return;
    }
  }
}

bool Exchange::Came(int rank, uint32_t number) const {
  const auto& peer = members_.peers[rank];
  if (peer == nullptr) return true;
  const uint32_t posted =
      peer->control().posted.load(std::memory_order_acquire);
  return static_cast<int32_t>(posted - number) >= 0;
}

bool Exchange::AllCame(Wait* wait) const {
  while (wait->late < ranks() && Came(wait->late, wait->number)) ++wait->late;
  return wait->late == ranks();
}

bool Exchange::Spin(Wait* wait) {
  const absl::Duration budget =
      std::min(policy_.Budget(wait->begun),
               absl::Nanoseconds(progress::SpinPolicy::kMaxNanos));
  if (budget <= absl::ZeroDuration()) return false;
  while (true) {
    for (int i = 0; i < kLooksPerClock; ++i) {
      if (AllCame(wait)) return true;
      Pause();
    }
    const absl::Time now = base::SteadyNow();
    if (now - wait->begun >= budget) return false;
    sched_yield();  // a peer may need this core
    const absl::Time back = base::SteadyNow();
    policy_.RecordYield(back - now, back, &losses_);
  }
}

absl::Status Exchange::Sleep(Wait* wait) {
  Control& own = members_.own->control();
  own.sleeping.store(1, std::memory_order_seq_cst);
  absl::Status status = LookForFaults(wait);
  while (status.ok() && !AllCame(wait)) {
    SleepOnce(*wait);
    if (!AllCame(wait)) status = LookForFaults(wait);
  }
  own.sleeping.store(0, std::memory_order_relaxed);
  return status;
}

void Exchange::SleepOnce(const Wait& wait) {
  const std::atomic<uint32_t>& word =
      members_.peers[wait.late]->control().posted;
  const uint32_t posted = word.load(std::memory_order_seq_cst);
  if (static_cast<int32_t>(posted - wait.number) >= 0) return;
  FutexWait(word, posted);
}

absl::Status Exchange::Compare(const CallWords& call) {
  for (int rank = 0; rank < ranks(); ++rank) {
    const auto& peer = members_.peers[rank];
    if (peer == nullptr) continue;
    CallWords other;
    for (int i = 0; i < kCallWords; ++i) {
      other[i] =
          peer->control().calls[posts_ % 2][i].load(std::memory_order_relaxed);
    }
    if (other == call) continue;
    return End(
        Fault::kMismatch, rank,
        absl::StrCat("rank ", rank, " calls ", Describe(other), ", rank ",
                     this->rank(), " calls ", Describe(call)));
  }
  return absl::OkStatus();
}

absl::Status Exchange::LookForFaults(Wait* wait) {
  if (aborted_.load(std::memory_order_relaxed)) {
    return End(Fault::kAborted, rank(), "");
  }
  // Reports first: a rank that ends because another one has died is not the
  // cause.
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

// A rank that has come may report a failure, too: it has ended its wait. If all
// have come by now, the report is of a later call.
absl::Status Exchange::LookForReports(Wait* wait) {
  for (int rank = 0; rank < ranks(); ++rank) {
    const auto& peer = members_.peers[rank];
    if (peer == nullptr) continue;
    const uint32_t failure =
        peer->control().failure.load(std::memory_order_acquire);
    if (failure == 0) continue;
    if (AllCame(wait)) return absl::OkStatus();
    const auto fault = static_cast<Fault>(failure & 0xFF);
    const auto culprit = static_cast<int>(failure >> 8);
    return End(fault, culprit,
               absl::StrCat("rank ", culprit, " ", Text(fault), ", as rank ",
                            rank, " reports"));
  }
  return absl::OkStatus();
}

// A rank may come, and then leave or end, between two looks at its posts. After
// each sign of an end, this function looks once more.
absl::Status Exchange::LookForDeaths(Wait* wait) {
  for (int rank = wait->late; rank < ranks(); ++rank) {
    if (Came(rank, wait->number)) continue;
    const PeerMember& peer = *members_.peers[rank];
    if (peer.control().left.load(std::memory_order_acquire) != 0) {
      if (Came(rank, wait->number)) continue;
      // May have failed before it left.
      const absl::Status reported = LookForReports(wait);
      return reported.ok() ? End(Fault::kLeft, rank, "") : reported;
    }
    pollfd life = {peer.life_fd(), POLLIN, 0};
    if (poll(&life, 1, 0) > 0 && !Came(rank, wait->number)) {
      return End(Fault::kDied, rank, "");
    }
  }
  return absl::OkStatus();
}

absl::Status Exchange::LookForSilence(Wait* wait) {
  const absl::Time now = base::SteadyNow();
  // Begins anew after a time in which this process did not run either.
  const bool begins = now - wait->last_look > kSilence / 4;
  wait->last_look = now;
  wait->pulses.resize(ranks());
  for (int rank = wait->late; rank < ranks(); ++rank) {
    if (Came(rank, wait->number)) continue;
    const uint64_t heartbeat = members_.peers[rank]->control().heartbeat.load(
        std::memory_order_relaxed);
    Pulse& pulse = wait->pulses[rank];
    if (begins || heartbeat != pulse.heartbeat) {
      pulse = {heartbeat, now};
    } else if (now - pulse.since >= kSilence) {
      return End(Fault::kSilent, rank, "");
    }
  }
  return absl::OkStatus();
}

absl::Status Exchange::End(Fault fault, int culprit,
                           const std::string& detail) {
  status_ = StatusOf(fault, culprit, detail);
  Report(fault, culprit);
  return status_;
}

void Exchange::Report(Fault fault, int culprit) {
  uint32_t none = 0;
  members_.own->control().failure.compare_exchange_strong(
      none, static_cast<uint32_t>(fault) | static_cast<uint32_t>(culprit) << 8,
      std::memory_order_release);
}

void Exchange::Abort() {
  if (!CheckOwner().ok()) return;
  aborted_.store(true, std::memory_order_relaxed);
  Report(Fault::kAborted, rank());
}

}  // namespace penstock::collectives
