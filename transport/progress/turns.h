// Divides the time of waiting threads among their sources.

#ifndef PENSTOCK_TRANSPORT_PROGRESS_TURNS_H_
#define PENSTOCK_TRANSPORT_PROGRESS_TURNS_H_

#include <atomic>
#include <cstdint>

#include "absl/time/time.h"

namespace penstock {
namespace progress {

// A schedule for sources of input that a busy thread could starve. Hot paths
// need no turn: a thread polls them in each round. Any other source costs a
// system call, or a check of many paths, and is therefore polled only when its
// turn is due:
//
//   loop: one round of the hot paths; then, if a turn is due, poll its source
//
// Guarantees, while at least one thread makes rounds:
// - A source that is due has its turn after the current round. The time between
//   two turns is at most the interval, one round, and the other source's turn.
// - A thread that has had a turn makes a round before its next turn.
// - Threads share the schedule. One of them takes a turn; the others continue.
//
// Reads no clock. Thread-safe without locks.
class Turns {
 public:
  enum class Source {
    kSockets,    // all that epoll reports: connections, listeners, doorbells
    kColdPaths,  // paths that had no input lately
  };

  // The time from one turn of a source to the next. Checking idle sockets takes
  // 1 to 3 us, so turns cost about one per cent of a thread. With 50 us, calls
  // of 8 bytes took 8 per cent longer.
  static constexpr int64_t kIntervalNanos = 250 * 1000;
  // The approximate cap, in nanoseconds, on the time of a turn, and of a round
  // of the paths. A source with more input is due again after the next round.
  static constexpr int64_t kTurnNanos = 100 * 1000;
  // The upper bound in docs/threading.md for the time between two turns of a
  // source: the interval, a round, a turn of each source, and a reserve of
  // about the same size for packets and events that end late.
  static constexpr int64_t kBoundNanos = 1000 * 1000;

  // Returns true if the source's turn is due at `now`. The caller then takes
  // the turn. The next turn is due an interval later.
  bool Take(Source source, absl::Time now);
  // Makes the source due immediately. Call if the source may have more input.
  void MakeDue(Source source);

 private:
  static constexpr int kSources = 2;
  // A time earlier than all others, with a margin against overflow.
  static constexpr int64_t kNever = -(int64_t{1} << 62);

  std::atomic<int64_t> taken_[kSources] = {{kNever}, {kNever}};
};

}  // namespace progress
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_PROGRESS_TURNS_H_
