// Input that a thread leaves for others to poll.

#ifndef PENSTOCK_TRANSPORT_PROGRESS_LEFT_INPUT_H_
#define PENSTOCK_TRANSPORT_PROGRESS_LEFT_INPUT_H_

#include <atomic>

namespace penstock {
namespace progress {

// A note that paths of a PollSet have input for which no doorbell will ring. A
// thread that has polled long enough leaves the note, and does something else.
//
// Why no thread sleeps while there is a note. Leave() writes the note, then
// reads the count of sleepers. BeginSleep() counts the sleeper, then reads the
// note. All four are sequentially consistent. So at least one of the two
// threads sees the other: the sleeper takes the note, or the leaver is told to
// have somebody polled.
//
// Thread-safe without locks.
class LeftInput {
 public:
  // Leaves a note. Returns true if the caller must have another thread Take()
  // it: some threads sleep, or none ever takes notes before it sleeps.
  bool Leave() {
    left_.store(true);
    return sleepers_.load() > 0 || !is_attended_.load();
  }
  // Takes the note. Returns whether there was one; the caller then polls.
  bool Take() { return left_.load() && left_.exchange(false); }

  // Announces that the caller sleeps until a doorbell. Returns false if it took
  // a note: the caller polls, and does not sleep.
  bool BeginSleep() {
    if (!is_attended_.load()) is_attended_.store(true);
    sleepers_.fetch_add(1);
    if (!Take()) return true;
    EndSleep();
    return false;
  }
  // Ends what a successful BeginSleep() began.
  void EndSleep() { sleepers_.fetch_sub(1); }

 private:
  std::atomic<bool> left_{false};
  std::atomic<bool> is_attended_{false};
  std::atomic<int> sleepers_{0};
};

}  // namespace progress
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_PROGRESS_LEFT_INPUT_H_
