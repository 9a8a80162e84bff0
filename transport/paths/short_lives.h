// Detects that this process's connections end too soon to be worth a side path.

#ifndef PENSTOCK_TRANSPORT_PATHS_SHORT_LIVES_H_
#define PENSTOCK_TRANSPORT_PATHS_SHORT_LIVES_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"

namespace penstock {
namespace paths {

// Counts the recent short-lived connections of this process's clients.
//
// Setting up a side path costs both sides about as much as opening the
// connection. A program that opens a channel for each call pays this cost for
// nothing. While many connections end soon, a new connection starts on tcp, and
// tries a side path only after kShort.
//
// Thread-safe without locks, because the process may fork while a thread runs a
// function here. Two connections that end at the same time may be counted as
// one.
class ShortLives {
 public:
  // The longest life that counts as short. Setting up a side path takes less
  // than 1 ms on an idle machine.
  static constexpr absl::Duration kShort = absl::Milliseconds(50);
  // AreFrequent() returns true if at least this many short lives ended within
  // kWindow. At a lower rate, setting up side paths costs less than a fifth of
  // a core.
  static constexpr size_t kMany = 512;
  static constexpr absl::Duration kWindow = absl::Seconds(2);

  // Returns the process's instance, which is never destroyed.
  static ShortLives* OfProcess();

  // Records the life of a connection. Both arguments are results of
  // base::SteadyNow().
  void OnEnd(absl::Time begin, absl::Time end);
  // Returns true if a connection that begins at `now` will probably have a
  // short life.
  bool AreFrequent(absl::Time now) const;

 private:
  // The end time, in nanoseconds, of an entry that is not in use: earlier than
  // all real ends.
  static constexpr int64_t kNever = -(int64_t{1} << 62);

  // The ends of the latest kMany short lives. A new end replaces the oldest.
  struct End {
    std::atomic<int64_t> at{kNever};
  };
  std::array<End, kMany> ends_;
  std::atomic<size_t> next_{0};
};

}  // namespace paths
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_PATHS_SHORT_LIVES_H_
