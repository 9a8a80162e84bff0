// Learns which kind of copy is faster.

#ifndef PENSTOCK_COLLECTIVES_HOST_COPY_CHOICE_H_
#define PENSTOCK_COLLECTIVES_HOST_COPY_CHOICE_H_

#include <array>
#include <cstddef>
#include <limits>

#include "absl/time/time.h"

namespace penstock::collectives {

// Chooses between plain and streaming copies by the times of earlier
// operations. Cores that share a cache pass dirty lines to each other faster
// than through memory. Other cores do so several times slower, and a virtual
// machine moves between such cores.
//
// Uses the kind with the shorter time. Tries the other kind now and then, less
// often after each try in vain. A try has several operations, because the first
// one meets the memory as the other kind has left it. Operations of other sizes
// count separately.
//
// Thread-compatible.
class CopyChoice {
 public:
  // The number of operations of a try, and of those between two tries.
  static constexpr int kTry = 4;
  static constexpr int kFirstInterval = 32;
  static constexpr int kLastInterval = 512;
  // A known time grows by this factor with each operation of its kind, unless
  // the operation is faster. A single operation may be slow for other reasons.
  static constexpr double kGrowth = 1.05;

  // Returns true if the next operation of `bytes` is to use streaming copies.
  bool Streams(size_t bytes);
  // Records the time of an operation.
  void Record(size_t bytes, bool streamed, absl::Duration time);

 private:
  struct Times {
    bool streaming_is_faster() const { return seconds[1] < seconds[0]; }

    // By kind: plain, streaming. 0 is unknown, and tried first.
    std::array<double, 2> seconds = {0, 0};
    int interval = kFirstInterval;
    int until_try = kFirstInterval;
    // The operations of the present try that are left, and their kind.
    int left = 0;
    bool tries_streaming = false;
  };

  Times& TimesOf(size_t bytes);

  // By the number of bits of the size.
  std::array<Times, std::numeric_limits<size_t>::digits + 1> times_;
};

}  // namespace penstock::collectives

#endif  // PENSTOCK_COLLECTIVES_HOST_COPY_CHOICE_H_
