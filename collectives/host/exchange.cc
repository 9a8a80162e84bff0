#include "collectives/host/exchange.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
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
#include "collectives/host/futex.h"
#include "collectives/host/watch.h"
#include "transport/base/steady_time.h"
#include "transport/progress/fork_count.h"

namespace penstock::collectives {
namespace {

// The number of checks of the peers' posts between two checks of the clock:
// about 1 us.
constexpr int kLooksPerClock = 64;

static_assert(Control::kWords == kCallWords, "a post has room for a call");

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

Exchange::Exchange(Members members, progress::PollingMode polling,
                   absl::Duration timeout, absl::Duration silence)
    : members_(std::move(members)),
      watch_(&members_, timeout, silence),
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
  return own.ok() ? watch_.Ready() : own;
}

absl::Status Exchange::CheckReads() {
  // Orders the reads of operands before those of the peers' reports.
  std::atomic_thread_fence(std::memory_order_acquire);
  return watch_.Ended();
}

void Exchange::Abort() {
  if (CheckOwner().ok()) watch_.Abort();
}

absl::Status Exchange::Meet(const CallWords& call, uint64_t place) {
  absl::Status ready = Ready();
  if (!ready.ok()) return ready;
  Publish(call, place);
  Watch::Wait wait;
  wait.came = [this](int rank) { return Came(rank, posts_); };
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
  // Stores `posted` before reading `sleeping`, while a sleeper stores
  // `sleeping` before reading `posted`. At least one of the two thus sees the
  // other's store.
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

bool Exchange::AllCame(Watch::Wait* wait) const {
  while (wait->late < ranks() && Came(wait->late, posts_)) ++wait->late;
  return wait->late == ranks();
}

bool Exchange::Spin(Watch::Wait* wait) {
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

absl::Status Exchange::Sleep(Watch::Wait* wait) {
  Control& own = members_.own->control();
  own.sleeping.store(1, std::memory_order_seq_cst);
  absl::Status status = watch_.Look(wait);
  while (status.ok() && !AllCame(wait)) {
    SleepOnce(*wait);
    if (!AllCame(wait)) status = watch_.Look(wait);
  }
  own.sleeping.store(0, std::memory_order_relaxed);
  return status;
}

void Exchange::SleepOnce(const Watch::Wait& wait) {
  const std::atomic<uint32_t>& word =
      members_.peers[wait.late]->control().posted;
  const uint32_t posted = word.load(std::memory_order_seq_cst);
  if (static_cast<int32_t>(posted - posts_) >= 0) return;
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
    // Checks for an abort first. After an abort, other threads may already call
    // other operations, which does not count as a mismatch.
    absl::Status ended = watch_.Ended();
    if (!ended.ok()) return ended;
    return watch_.End(
        Fault::kMismatch, rank,
        absl::StrCat("rank ", rank, " calls ", Describe(other), ", rank ",
                     this->rank(), " calls ", Describe(call)));
  }
  return absl::OkStatus();
}

}  // namespace penstock::collectives
