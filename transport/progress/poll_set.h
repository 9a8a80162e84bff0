// The fast paths of the process. Waiting threads poll them before they sleep.

#ifndef PENSTOCK_TRANSPORT_PROGRESS_POLL_SET_H_
#define PENSTOCK_TRANSPORT_PROGRESS_POLL_SET_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/time/time.h"
#include "transport/base/mutex.h"
#include "transport/base/steady_time.h"

namespace penstock {
namespace progress {

// A source of input that arrives without the kernel's knowledge.
class Pollable {
 public:
  virtual ~Pollable() = default;
  // Delivers a bounded amount of the input that has arrived. Returns true if
  // there was any input; the caller then polls again before it sleeps. Called
  // from any thread. May block on the pollable's own lock, and may call
  // PollSet.
  virtual bool Poll() = 0;
  // Returns true if Poll() would find input. Must be cheap, take no lock and
  // not call PollSet.
  virtual bool HasInput() const = 0;
  // Arms or disarms the doorbell. While the doorbell is armed, the peer rings
  // when it sends, at least once each time it is armed. The doorbell wakes a
  // thread, which polls this pollable until no input is left. Must take no
  // lock, not call PollSet, and end with a sequentially consistent fence.
  virtual void SetArmed(bool armed) = 0;
  // Returns true if the kernel wakes a sleeping thread for all input, even if
  // the doorbell is not armed. The set then does not check for input that a
  // thread has missed. Always returns the same value.
  virtual bool IsReported() const { return false; }
};

// The pollables of the process. A thread that is about to sleep does this:
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
// A thread that a doorbell has woken polls the pollable until it is empty.
//
// A pollable is hot if it had input recently, and cold otherwise. Cold
// pollables are polled rarely. Cold pollables stay armed even while threads
// spin.
//
// No thread sleeps while there is input that the kernel does not report. Proof:
// the peer writes input i, executes a fence, then reads the armed flag. Arming
// writes the flag, executes a fence, then calls HasInput(). At least one of the
// two sides sees the other's write (Dekker's argument; the fences must be
// sequentially consistent). There are four cases:
//   1. If the peer saw the flag set, its doorbell wakes a thread, which polls.
//      The peer may ring once for several inputs, if the flag was not set again
//      in between. The woken thread therefore sets the flag again after its
//      poll, and checks for input once more, as after any arming.
//   2. Otherwise the peer saw the flag clear. Flags are cleared only while a
//      spinner exists, and mu_ is held while spinners are counted and flags
//      written. Hence a later EndSpin() sets the flag: the EndSpin() of the
//      last spinner, or one that finds the pollable cold. This EndSpin() sees i
//      and returns true, and its caller polls. Add() also sets the flag of a
//      new pollable under mu_, and its caller polls for earlier input.
//   3. A polling thread may find the slot taken by another thread, X. X may
//      have checked for input before i came, and would go to sleep without
//      having seen i. The polling thread therefore marks the slot as missed. X
//      releases the slot by a read-modify-write of the same word. If X sees the
//      mark, X checks again, and finds i. If X released the slot before, the
//      polling thread finds the slot free.
//   4. If BeginSpin() returned false, there is a spinner, and case 2 holds for
//      that spinner.
//
// Thread-safe. Polling takes only the flag of each slot, and mu_ when a
// pollable becomes hot.
class PollSet {
 public:
  using SlotId = size_t;

  // Caps the time of a round of polls, in nanoseconds. gRPC and the application
  // take about four times as long to handle the messages of a round. No other
  // source is polled meanwhile.
  static constexpr int64_t kRoundNanos = 50 * 1000;

  // Returns the set of the process, which allows one spinner for each usable
  // core. Never destroyed.
  static PollSet* Get();

  // Reads the time from `clock`.
  explicit PollSet(int max_spinners, absl::Time (*clock)() = &base::SteadyNow);
  PollSet(const PollSet&) = delete;
  PollSet& operator=(const PollSet&) = delete;
  // Requires that no thread uses the set any more.
  ~PollSet();

  // Adds a pollable, and holds a reference to it until Remove(). Afterwards the
  // caller polls, or checks HasInput(), because no doorbell may have rung for
  // earlier input.
  SlotId Add(std::shared_ptr<Pollable> pollable);
  // Removes a pollable. Call it exactly once for each Add(). Does not wait: if
  // a Poll() is running, its thread releases the set's reference afterwards.
  // May be called from within that Poll().
  void Remove(SlotId id);

  // Polls the hot pollables that have input and that no other thread is
  // polling. Returns true if any of them delivered something. Stops after about
  // kRoundNanos; the next call continues with the rest.
  bool PollHot() { return PollRound(/*all=*/false); }
  // Polls all pollables, as PollHot() polls the hot ones.
  bool PollAll() { return PollRound(/*all=*/true); }

  // Begins to spin. Returns false if enough threads spin already; the caller
  // then sleeps.
  bool BeginSpin();
  // Ends a spin. Call after each BeginSpin() that returned true. Returns true
  // if pollables that were just armed have input. The caller then polls all
  // pollables instead of sleeping.
  bool EndSpin();

  int max_spinners() const { return max_spinners_; }
  // Returns true if there is nothing to poll.
  bool empty() const { return count_.load(std::memory_order_relaxed) == 0; }

 private:
  enum State : uint32_t {
    kEmpty,
    kIdle,
    kPolled,         // one thread polls it
    kPolledMissed,   // one thread polls it, and another one wanted to
    kPolledRemoved,  // one thread polls it, and will free the slot
  };

  // Each slot has its own cache line, so that threads that poll different slots
  // do not slow each other down.
  struct alignas(64) Slot {
    std::atomic<uint32_t> state{kEmpty};
    std::atomic<bool> hot{false};        // written under mu_
    std::atomic<bool> had_input{false};  // since the last IsQuietLocked()
    int quiet_looks = 0;                 // guarded by mu_
    // Written under mu_, while the slot is kEmpty or by the thread that frees
    // the slot. Read under mu_, or by the thread that polls.
    std::shared_ptr<Pollable> pollable;
  };
  static constexpr size_t kSlotsPerBlock = 32;
  struct Block {
    Slot slots[kSlotsPerBlock];
    std::atomic<Block*> next{nullptr};
  };

  bool PollRound(bool all);
  bool PollSlot(Slot* slot);
  bool PollTaken(Slot* slot);
  void NoteInput(Slot* slot);
  bool IsQuietLocked(Slot* slot) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void FreeSlot(Slot* slot);
  Slot* SlotAt(SlotId id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  template <typename Function>
  void ForEachSlot(size_t limit, Function function);

  const int max_spinners_;
  absl::Time (*const clock_)();
  Block first_;
  // The number of slots that were ever used.
  std::atomic<size_t> limit_{0};
  std::atomic<size_t> count_{0};  // of added pollables
  // The slot at which the next round begins.
  std::atomic<size_t> begin_{0};

  base::Mutex mu_;
  int spinners_ ABSL_GUARDED_BY(mu_) = 0;  // mu_ guards the armed flags too
  uint32_t spins_ended_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace progress
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_PROGRESS_POLL_SET_H_
