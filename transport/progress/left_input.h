// Input that one thread leaves for another thread to poll.

#ifndef PENSTOCK_TRANSPORT_PROGRESS_LEFT_INPUT_H_
#define PENSTOCK_TRANSPORT_PROGRESS_LEFT_INPUT_H_

#include <atomic>

namespace penstock {
namespace progress {

// A flag saying that paths of a PollSet have input for which no doorbell will
// ring. A thread sets the flag if it has polled long enough and turns to other
// work.
//
// No thread sleeps while the flag is set. Proof: Leave() sets the flag, then
// reads the count of sleepers. BeginSleep() increments the count, then reads
// the flag. All four accesses are sequentially consistent, so at least one of
// the two threads sees the other's write. Either the sleeper takes the flag, or
// Leave() tells its caller to make another thread poll.
//
// Thread-safe without locks.
class LeftInput {
 public:
  // Sets the flag. Returns true if the caller must make another thread call
  // Take(): some threads sleep, or no thread ever calls Take() before it
  // sleeps.
  bool Leave() {
    left_.store(true);
    return sleepers_.load() > 0 || !is_attended_.load();
  }
  // Clears the flag. Returns true if it was set; the caller then polls.
  bool Take() { return left_.load() && left_.exchange(false); }

  // Announces that the caller is about to sleep until a doorbell rings. Returns
  // false if the flag was set; the call clears it, and the caller must poll
  // instead of sleeping.
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
