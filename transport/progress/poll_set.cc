#include "transport/progress/poll_set.h"

#include <algorithm>
#include <utility>

#include "transport/base/per_process.h"
#include "transport/progress/fork_count.h"
#include "transport/progress/usable_cores.h"

namespace penstock {
namespace progress {
namespace {

// Limits how often a thread polls a slot whose input other threads keep
// missing. After this limit the thread returns, and its caller polls again.
constexpr int kMaxLooks = 4;

// The number of checks after which a pollable becomes cold. Every kSpinsPerLook
// spins, EndSpin() checks which pollables had input since the last check. A
// pollable without input in kQuietLooks consecutive checks becomes cold: a
// doorbell then costs less than checking the pollable in each poll.
constexpr int kQuietLooks = 2;
constexpr uint32_t kSpinsPerLook = 256;

// The number of bits of a SlotId that tell the slot. The other bits tell the
// process, because a forked child removes what its parent has added.
constexpr int kSlotBits = 32;

size_t ProcessBits() { return static_cast<size_t>(ForkCount()) << kSlotBits; }

// Allows as many spinners as there are cores. Spinners yield their cores to
// other threads, so no core has to stay free. With fewer spinners, two threads
// that wait alternately would sleep and be woken each time.
struct OfProcess {
  PollSet set{UsableCores()};
};

}  // namespace

constexpr int64_t PollSet::kRoundNanos;
constexpr size_t PollSet::kSlotsPerBlock;

// Returns an empty set in a forked child. The parent's pollables belong to the
// parent, its spinners do not run in the child, and one of its threads may have
// held the lock.
PollSet* PollSet::Get() { return &base::PerProcess<OfProcess>::Get()->set; }

PollSet::PollSet(int max_spinners, absl::Time (*clock)())
    : max_spinners_(max_spinners), clock_(clock) {}

PollSet::~PollSet() {
  Block* block = first_.next.load(std::memory_order_relaxed);
  while (block != nullptr) {
    Block* next = block->next.load(std::memory_order_relaxed);
    delete block;
    block = next;
  }
}

// Calls function(slot, id) for the first `limit` slots until it returns false.
template <typename Function>
void PollSet::ForEachSlot(size_t limit, Function function) {
  Block* block = &first_;
  for (size_t id = 0; id < limit; ++id) {
    if (id > 0 && id % kSlotsPerBlock == 0) {
      block = block->next.load(std::memory_order_acquire);
    }
    if (!function(&block->slots[id % kSlotsPerBlock], id)) return;
  }
}

PollSet::Slot* PollSet::SlotAt(SlotId id) {
  Block* block = &first_;
  for (size_t i = 0; i < id / kSlotsPerBlock; ++i) {
    if (block->next.load(std::memory_order_relaxed) == nullptr) {
      block->next.store(new Block, std::memory_order_release);
    }
    block = block->next.load(std::memory_order_relaxed);
  }
  return &block->slots[id % kSlotsPerBlock];
}

PollSet::SlotId PollSet::Add(std::shared_ptr<Pollable> pollable) {
  base::MutexLock lock(&mu_);
  const size_t limit = limit_.load(std::memory_order_relaxed);
  SlotId id = limit;
  ForEachSlot(limit, [&id](Slot* slot, SlotId candidate) {
    if (slot->state.load(std::memory_order_relaxed) != kEmpty) return true;
    id = candidate;
    return false;
  });
  count_.fetch_add(1, std::memory_order_relaxed);
  pollable->SetArmed(spinners_ == 0);
  Slot* slot = SlotAt(id);
  slot->pollable = std::move(pollable);
  slot->hot.store(true, std::memory_order_relaxed);
  slot->quiet_looks = 0;
  slot->state.store(kIdle, std::memory_order_release);
  if (id == limit) limit_.store(limit + 1, std::memory_order_release);
  return ProcessBits() | id;
}

// Does nothing in a forked child if the parent has added the pollable. The
// parent's set keeps its reference, because no thread of the child uses it.
void PollSet::Remove(SlotId id) {
  const size_t process = ProcessBits();
  if ((id & ~((size_t{1} << kSlotBits) - 1)) != process) return;
  id -= process;
  count_.fetch_sub(1, std::memory_order_relaxed);
  Slot* slot;
  {
    base::MutexLock lock(&mu_);
    slot = SlotAt(id);
  }
  uint32_t state = slot->state.load(std::memory_order_relaxed);
  for (;;) {
    // Claims the slot if it is idle, so that no thread begins to poll it.
    const bool idle = state == kIdle;
    if (slot->state.compare_exchange_weak(state, kPolledRemoved,
                                          std::memory_order_acq_rel)) {
      if (idle) FreeSlot(slot);
      return;
    }
  }
}

void PollSet::FreeSlot(Slot* slot) {
  std::shared_ptr<Pollable> pollable;  // destroyed outside the lock
  base::MutexLock lock(&mu_);
  pollable = std::move(slot->pollable);
  slot->pollable = nullptr;
  slot->hot.store(false, std::memory_order_relaxed);
  slot->state.store(kEmpty, std::memory_order_release);
}

bool PollSet::PollRound(bool all) {
  const size_t limit = limit_.load(std::memory_order_acquire);
  const size_t begin = begin_.load(std::memory_order_relaxed);
  bool any = false;
  absl::Time end = absl::InfiniteFuture();
  // Visits the slots from `begin` on, and then the slots before `begin`.
  for (const bool wrapped : {false, true}) {
    if (wrapped && begin == 0) break;
    bool over = false;
    ForEachSlot(limit, [&](Slot* slot, SlotId id) {
      if ((id < begin) != wrapped) return !wrapped;
      if (!all && !slot->hot.load(std::memory_order_relaxed)) return true;
      if (!PollSlot(slot)) return true;
      any = true;
      if (limit == 1) return true;
      const absl::Time now = clock_();
      if (end == absl::InfiniteFuture()) {
        end = now + absl::Nanoseconds(kRoundNanos);
      }
      over = now >= end;
      if (over) begin_.store((id + 1) % limit, std::memory_order_relaxed);
      return !over;
    });
    if (over) break;
  }
  return any;
}

bool PollSet::PollSlot(Slot* slot) {
  uint32_t state = slot->state.load(std::memory_order_seq_cst);
  for (;;) {
    switch (state) {
      case kIdle:
        if (slot->state.compare_exchange_weak(state, kPolled,
                                              std::memory_order_acq_rel)) {
          return PollTaken(slot);
        }
        break;
      case kPolled:
      case kPolledMissed:
        // Writes the state even if its value stays the same: only a write is
        // ordered before the other thread's next check (case 3 in poll_set.h).
        if (slot->state.compare_exchange_weak(state, kPolledMissed,
                                              std::memory_order_acq_rel)) {
          return false;
        }
        break;
      default:
        return false;
    }
  }
}

// Polls a slot that this thread has set to kPolled.
bool PollSet::PollTaken(Slot* slot) {
  bool any = false;
  const int max_looks = slot->pollable->IsReported() ? 0 : kMaxLooks;
  for (int look = 1;; ++look) {
    if (slot->pollable->HasInput() && slot->pollable->Poll()) {
      any = true;
      NoteInput(slot);
    }
    uint32_t state = kPolled;
    if (slot->state.compare_exchange_strong(state, kIdle,
                                            std::memory_order_acq_rel)) {
      return any;
    }
    if (state == kPolledRemoved) {
      FreeSlot(slot);
      return any;
    }
    // Polls again after a missed input (kPolledMissed). After a success, the
    // caller polls again anyway.
    if (any || look >= max_looks) {
      if (slot->state.compare_exchange_strong(state, kIdle,
                                              std::memory_order_acq_rel)) {
        return any || max_looks > 0;
      }
      FreeSlot(slot);  // the slot was just removed
      return any;
    }
    slot->state.compare_exchange_strong(state, kPolled,
                                        std::memory_order_acq_rel);
    // Continues, because a failed exchange means that the slot has been
    // removed. The next round of this loop notices the removal, possibly after
    // one more poll.
  }
}

// Records that the slot had input. Called by the thread that has taken the
// slot. The slot keeps the pollable alive.
void PollSet::NoteInput(Slot* slot) {
  if (!slot->had_input.load(std::memory_order_relaxed)) {
    slot->had_input.store(true, std::memory_order_relaxed);
  }
  if (slot->hot.load(std::memory_order_relaxed)) return;
  base::MutexLock lock(&mu_);
  slot->hot.store(true, std::memory_order_relaxed);
  slot->quiet_looks = 0;
  if (spinners_ > 0) slot->pollable->SetArmed(false);
}

bool PollSet::BeginSpin() {
  base::MutexLock lock(&mu_);
  if (spinners_ == max_spinners_) return false;
  if (spinners_++ > 0) return true;
  ForEachSlot(limit_.load(std::memory_order_relaxed), [](Slot* slot, SlotId) {
    if (slot->hot.load(std::memory_order_relaxed)) {
      slot->pollable->SetArmed(false);
    }
    return true;
  });
  return true;
}

bool PollSet::EndSpin() {
  base::MutexLock lock(&mu_);
  const bool is_last = --spinners_ == 0;
  const bool looks = ++spins_ended_ % kSpinsPerLook == 0;
  if (!is_last && !looks) return false;
  bool input = false;
  ForEachSlot(limit_.load(std::memory_order_relaxed), [&](Slot* slot, SlotId) {
    mu_.AssertHeld();
    if (!slot->hot.load(std::memory_order_relaxed)) return true;
    if (looks && IsQuietLocked(slot)) {
      slot->hot.store(false, std::memory_order_relaxed);
    } else if (!is_last) {
      return true;
    }
    slot->pollable->SetArmed(true);
    const Pollable& pollable = *slot->pollable;
    if (!pollable.IsReported() && pollable.HasInput()) input = true;
    return true;
  });
  return input;
}

bool PollSet::IsQuietLocked(Slot* slot) {
  if (slot->had_input.exchange(false, std::memory_order_relaxed)) {
    slot->quiet_looks = 0;
    return false;
  }
  return ++slot->quiet_looks >= kQuietLooks;
}

}  // namespace progress
}  // namespace penstock
