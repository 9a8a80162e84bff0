// Input that one thread leaves for another thread to poll.

#ifndef PENSTOCK_TRANSPORT_PROGRESS_LEFT_INPUT_H_
#define PENSTOCK_TRANSPORT_PROGRESS_LEFT_INPUT_H_

#include <atomic>

namespace penstock {
namespace progress {

// A note that paths of a PollSet have input for which no doorbell will ring. A
// thread that has polled long enough leaves the note before it does other work.
//
// No thread sleeps while there is a note. Proof: Leave() writes the note, then
// reads the count of sleepers. BeginSleep() increments the count, then reads
// the note. All four accesses are sequentially consistent, so at least one of
// the two threads sees the other's write. Either the sleeper takes the note, or
// the leaver is told to make another thread poll.
//
// Thread-safe without locks.
class LeftInput {
 public:
  // Leaves a note. Returns true if the caller must make another thread call
  // Take(): some threads sleep, or no thread ever takes notes before it sleeps.
  bool Leave() {
    left_.store(true);
    return sleepers_.load() > 0 || !is_attended_.load();
  }
  // Takes the note. Returns true if there was one; the caller then polls.
  bool Take() { return left_.load() && left_.exchange(false); }

  // Announces that the caller is about to sleep until a doorbell rings. Returns
  // false if this call took a note; the caller must then poll instead of
  // sleeping.
  bool BeginSleep() {
    if (!is_attended_.load()) is_attended_.store(true);
    sleepers_.fetch_add(1);
    if (!Take()) return true;
    EndSleep();
    return false;
  }
  // Ends the sleep of a successful BeginSleep().
  void EndSleep() { sleepers_.fetch_sub(1); }

 private:
  std::atomic<bool> left_{false};
  std::atomic<bool> is_attended_{false};
  std::atomic<int> sleepers_{0};
};

}  // namespace progress
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_PROGRESS_LEFT_INPUT_H_
