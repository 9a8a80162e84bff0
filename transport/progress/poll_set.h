// What threads that wait anyway poll meanwhile.

#ifndef PENSTOCK_TRANSPORT_PROGRESS_POLL_SET_H_
#define PENSTOCK_TRANSPORT_PROGRESS_POLL_SET_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "transport/base/mutex.h"

namespace penstock {
namespace progress {

// Something that gets input without the kernel's knowledge.
class Pollable {
 public:
  virtual ~Pollable() = default;
  // Takes in what has come, a bounded amount. True if there was anything: the
  // caller then comes again before it sleeps. Takes its own lock, and waits for
  // it; safe from any thread. May call PollSet.
  virtual bool Poll() = 0;
  // Whether Poll() would find something. Cheap, takes no lock, and does not
  // call PollSet.
  virtual bool HasInput() const = 0;
  // While armed, the peer rings a doorbell (wakes a thread that then polls this
  // until it is empty) when it sends. Takes no lock, does not call PollSet, and
  // ends with a sequentially consistent fence.
  virtual void SetArmed(bool armed) = 0;
};

// The process's pollables. A thread about to sleep does this instead:
//
//   if (set->BeginSpin()) {
//     do {
//       while (for the time of SpinPolicy, nothing to do) {
//         set->PollHot(), and now and then set->PollAll();
//       }
//     } while (set->EndSpin() && (set->PollAll(), set->BeginSpin()));
//   }
//   sleep, woken by doorbells
//
// and a thread that was woken polls what it was woken for until that is empty.
//
// Hot pollables are those that had input of late. The others are cold: few
// looks go to them, and as they stay armed, spinning costs nothing for them.
//
// Why no input is slept over. The peer writes input i, fences, then reads the
// armed flag; arming writes the flag, fences, then reads HasInput(). Of two
// such sequences at least one sees the other's write (Dekker's argument, for
// which the fences must be sequentially consistent). So:
//   1. The peer saw the flag set: the doorbell wakes a thread, which polls.
//   2. It saw the flag clear. Flags are cleared only while there is a spinner,
//      and counting spinners and writing flags is one step under mu_; hence an
//      EndSpin() comes after, of the last spinner or one that takes the
//      pollable for cold, sets the flag, and sees i: it returns true, and its
//      caller polls. A pollable that is added is armed or not in the same way,
//      under mu_; what came before is its adder's to poll.
//   3. Whoever polls may find the slot taken by a thread X that looked for
//      input before i came, and that will find nothing and go to sleep. Then it
//      marks the slot as missed before it leaves. X, giving the slot back by a
//      read-modify-write of the same word, either sees the mark and looks
//      again, at i too, or came first, and then the slot was not taken.
//   4. BeginSpin() returned false: there is a spinner, so 2 holds for it.
//
// Thread-safe. Polling takes no lock but each slot's flag, and mu_ for a
// pollable that becomes hot.
class PollSet {
 public:
  using SlotId = size_t;

  // The process's set, with a place for a spinner on each usable core; never
  // destroyed.
  static PollSet* Get();

  explicit PollSet(int max_spinners);
  PollSet(const PollSet&) = delete;
  PollSet& operator=(const PollSet&) = delete;
  // Nobody uses the set any more.
  ~PollSet();

  // The caller looks at HasInput() afterwards, or polls: what came before was
  // perhaps not announced.
  SlotId Add(std::shared_ptr<Pollable> pollable);
  // Exactly once for each Add(). Waits for nobody: a Poll() under way goes on,
  // and its thread then drops the set's share. May be called from within it.
  void Remove(SlotId id);

  // Polls every hot pollable, or every one, that has input and that no other
  // thread polls. True if one of them did anything.
  bool PollHot();
  bool PollAll();

  // False: there are enough spinners; the caller goes to sleep.
  bool BeginSpin();
  // After a true BeginSpin(). True: input has come to what is armed again; the
  // caller polls all instead of sleeping.
  bool EndSpin();

  int max_spinners() const { return max_spinners_; }
  // Nothing to poll.
  bool empty() const { return count_.load(std::memory_order_relaxed) == 0; }

 private:
  enum State : uint32_t {
    kEmpty,
    kIdle,
    kPolled,         // by one thread
    kPolledMissed,   // and another one wanted to
    kPolledRemoved,  // the polling thread frees the slot
  };

  // A line each: threads that poll different slots do not disturb another.
  struct alignas(64) Slot {
    std::atomic<uint32_t> state{kEmpty};
    std::atomic<bool> hot{false};        // written under mu_
    std::atomic<bool> had_input{false};  // since the last look at it
    int quiet_looks = 0;                 // guarded by mu_
    // Written under mu_ while kEmpty or, to free it, by the only one who may;
    // read under mu_, or by the thread that polls.
    std::shared_ptr<Pollable> pollable;
  };
  static constexpr size_t kSlotsPerBlock = 32;
  struct Block {
    Slot slots[kSlotsPerBlock];
    std::atomic<Block*> next{nullptr};
  };

  bool PollSlot(Slot* slot);
  bool PollTaken(Slot* slot);
  void NoteInput(Slot* slot);
  bool IsQuietLocked(Slot* slot) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void FreeSlot(Slot* slot);
  Slot* SlotAt(SlotId id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  template <typename Function>
  void ForEachSlot(size_t limit, Function function);

  const int max_spinners_;
  Block first_;
  // Slots from here on were never used.
  std::atomic<size_t> limit_{0};
  std::atomic<size_t> count_{0};  // of added pollables

  base::Mutex mu_;
  int spinners_ ABSL_GUARDED_BY(mu_) = 0;  // so are the armed flags
  uint32_t spins_ended_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace progress
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_PROGRESS_POLL_SET_H_
