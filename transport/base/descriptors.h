// How many file descriptors this process has left.

#ifndef PENSTOCK_TRANSPORT_BASE_DESCRIPTORS_H_
#define PENSTOCK_TRANSPORT_BASE_DESCRIPTORS_H_

#include <cstdint>

#include "absl/status/status.h"

namespace penstock {
namespace base {

// The descriptors that are free, of those that this process may have. A
// connection needs one descriptor; a path beside it needs more. So paths leave
// some to connections.
struct Descriptors {
  // Looks at this process, from the highest number down, until enough are free
  // for a path. Costs a few hundred short system calls. Looks at 16,384 numbers
  // at most; beyond those, takes enough to be free.
  static Descriptors Now();

  // Returns true if a new path may take descriptors: more than three eighths of
  // the limit are free, or more than 384.
  bool HasRoomForPath() const { return free > Reserve() * 3 / 2; }
  // Returns how many paths must give their descriptors back, so that more than
  // a quarter of the limit, or than 256, is free for connections that come in a
  // burst. Below HasRoomForPath()'s bound, so that paths are not made and given
  // up by turns.
  int64_t Excess() const { return free > Reserve() ? 0 : Reserve() + 1 - free; }

  // Returns RESOURCE_EXHAUSTED, with the remedy, unless HasRoomForPath().
  absl::Status CheckForPath() const;
  // Returns that status. Its text depends on the limit only, so that a log does
  // not repeat it.
  absl::Status Scarce() const;

  int64_t free = 0;  // counted until HasRoomForPath()
  int64_t limit = 0;

 private:
  int64_t Reserve() const {
    constexpr int64_t kMostReserved = 256;
    return limit / 4 < kMostReserved ? limit / 4 : kMostReserved;
  }
};

}  // namespace base
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_BASE_DESCRIPTORS_H_
