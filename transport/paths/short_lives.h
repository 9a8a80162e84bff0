// Tells whether the connections of a process end too soon for a side path.

#ifndef PENSTOCK_TRANSPORT_PATHS_SHORT_LIVES_H_
#define PENSTOCK_TRANSPORT_PATHS_SHORT_LIVES_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"

namespace penstock {
namespace paths {

// The last connections of this process's clients that had a short life.
//
// To set up a side path costs both sides about as much as to open the
// connection. A program that opens a channel for each call pays that and gains
// nothing. While many connections end soon, a new connection begins on tcp, and
// looks for a side path after kShort.
//
// Thread-safe without locks, as a thread of a fork's parent may be inside. Of
// concurrent ends one may go unnoticed.
class ShortLives {
 public:
  // A life that ends earlier is a short one. A side path takes less than a
  // millisecond on an idle machine.
  static constexpr absl::Duration kShort = absl::Milliseconds(50);
  // The number of short lives in the last kWindow from which they are usual.
  // Below that rate, side paths cost less than a fifth of a core.
  static constexpr size_t kMany = 512;
  static constexpr absl::Duration kWindow = absl::Seconds(2);

  // Returns those of the process. Never destroyed.
  static ShortLives* OfProcess();

  // Notes that a connection that began at `begin` has ended at `end`. Both are
  // base::SteadyNow().
  void OnEnd(absl::Time begin, absl::Time end);
  // Returns whether a connection that begins at `now` should expect a short
  // life.
  bool AreUsual(absl::Time now) const;

 private:
  // In nanoseconds, far before all times.
  static constexpr int64_t kNever = -(int64_t{1} << 62);

  // The ends of the last kMany of them. The next one replaces the oldest.
  struct End {
    std::atomic<int64_t> at{kNever};
  };
  std::array<End, kMany> ends_;
  std::atomic<size_t> next_{0};
};

}  // namespace paths
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_PATHS_SHORT_LIVES_H_
