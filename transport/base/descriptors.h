// How many file descriptors this process has left.

#ifndef PENSTOCK_TRANSPORT_BASE_DESCRIPTORS_H_
#define PENSTOCK_TRANSPORT_BASE_DESCRIPTORS_H_

#include <cstdint>

#include "absl/status/status.h"

namespace penstock {
namespace base {

// The number of free file descriptors of this process. A connection needs one
// descriptor; a path needs more. Therefore paths leave some descriptors to
// connections, and doorbells, which make paths faster, some to paths.
struct Descriptors {
  // Counts free descriptors of this process, from the highest number down,
  // until there are enough for a path. Costs a few hundred short system
  // calls. Checks at most 16,384 numbers; if the limit is higher, assumes that
  // enough are free.
  static Descriptors Now();
  // Returns true if a path may take descriptors for doorbells, too: more than
  // kFreeForDoorbell are free. Counts as Now() does.
  static bool HaveRoomForDoorbell();
  static constexpr int64_t kFreeForDoorbell = 768;

  // Returns true if a new path may take descriptors: more than three eighths of
  // the limit are free, or more than 384.
  bool HasRoomForPath() const { return free > Reserve() * 3 / 2; }
  // Returns how many paths must give their descriptors back. Afterwards more
  // than a quarter of the limit, or more than 256, is free for a burst of
  // connections. This bound is below HasRoomForPath()'s, so that paths are not
  // made and given up alternately.
  int64_t Excess() const { return free > Reserve() ? 0 : Reserve() + 1 - free; }

  // Returns RESOURCE_EXHAUSTED, with the remedy, unless HasRoomForPath().
  absl::Status CheckForPath() const;
  // Returns the status of CheckForPath() for too few descriptors. The text
  // depends only on the limit, so that a log does not repeat it.
  absl::Status Scarce() const;

  int64_t free = 0;  // counted until HasRoomForPath()
  int64_t limit = 0;

 private:
  static Descriptors CountUntil(bool (*is_enough)(const Descriptors&));
  int64_t Reserve() const {
    constexpr int64_t kMostReserved = 256;
    return limit / 4 < kMostReserved ? limit / 4 : kMostReserved;
  }
};

}  // namespace base
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_BASE_DESCRIPTORS_H_
