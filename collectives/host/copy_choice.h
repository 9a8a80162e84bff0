// Chooses the kind of a copy: through the caches or past them.

#ifndef PENSTOCK_COLLECTIVES_HOST_COPY_CHOICE_H_
#define PENSTOCK_COLLECTIVES_HOST_COPY_CHOICE_H_

#include <array>
#include <cstddef>
#include <limits>

#include "absl/time/time.h"

namespace penstock::collectives {

// The size from which copies of a result bypass the caches. Such a result is
// larger than most caches, so its end would evict its beginning.
inline constexpr size_t kLargeResult = size_t{16} << 20;

// Copies a piece of an operation whose result has `whole` bytes.
void CopyPiece(const void* from, void* to, size_t bytes, size_t whole);

// Chooses between plain and streaming copies by the times of earlier
// operations. Cores that share a cache pass dirty lines to each other faster
// than through memory. Between other cores, this takes several times as long as
// through memory. A virtual machine may move between both kinds of cores.
//
// Uses the kind with the shorter known time. Tries the other kind now and then,
// and less often after each try that was slower. A try consists of several
// operations, because the first one finds the caches in the state that the
// other kind has left. Operations of different sizes are counted separately.
//
// Thread-compatible.
class CopyChoice {
 public:
  // The number of operations of a try, and the first number of operations
  // between two tries.
  static constexpr int kTry = 4;
  static constexpr int kFirstInterval = 32;
  static constexpr int kLastInterval = 512;
  // The factor by which the known time of a kind grows with each slower
  // operation. Small, because a single slow operation may have other causes.
  static constexpr double kGrowth = 1.05;

  // Returns true if the next operation of `bytes` is to use streaming copies.
  bool Streams(size_t bytes);
  // Records the time of an operation.
  void Record(size_t bytes, bool streamed, absl::Duration time);

 private:
  struct Times {
    bool streaming_is_faster() const { return seconds[1] < seconds[0]; }

    // The known time of plain and of streaming copies. 0 means unknown; an
    // unknown kind is tried first.
    std::array<double, 2> seconds = {0, 0};
    int interval = kFirstInterval;
    int until_try = kFirstInterval;
    // The number of operations that remain of the current try, and their kind.
    int left = 0;
    bool tries_streaming = false;
  };

  Times& TimesOf(size_t bytes);

  // The times, by the number of bits of the operation's size.
  std::array<Times, std::numeric_limits<size_t>::digits + 1> times_;
};

}  // namespace penstock::collectives

#endif  // PENSTOCK_COLLECTIVES_HOST_COPY_CHOICE_H_
