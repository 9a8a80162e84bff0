// Counts the free file descriptors of this process.

#ifndef PENSTOCK_TRANSPORT_BASE_DESCRIPTORS_H_
#define PENSTOCK_TRANSPORT_BASE_DESCRIPTORS_H_

#include <cstdint>

#include "absl/status/status.h"

namespace penstock {
namespace base {

// The number of free file descriptors of this process. A connection needs one
// descriptor; a path needs more. Paths therefore leave some descriptors for
// connections. Doorbells, which only make paths faster, leave some for paths.
struct Descriptors {
  // Counts free descriptors of this process, from the highest number down,
  // until there are enough for a path. Costs a few hundred short system
  // calls. Checks at most 16,384 numbers; if the limit is higher, assumes that
  // enough are free.
  static Descriptors Now();
  // Returns true if more than kFreeForDoorbell descriptors are free, so that a
  // path may also take some for doorbells. Counts as Now() does.
  static bool HaveRoomForDoorbell();
  static constexpr int64_t kFreeForDoorbell = 768;

  // Returns true if enough descriptors are free for a new path: more than three
  // eighths of the limit, or more than 384.
  bool HasRoomForPath() const { return free > Reserve() * 3 / 2; }
  // Returns the number of descriptors that paths must free. Afterwards a burst
  // of connections finds more than a quarter of the limit free, or more than
  // 256. This bound is lower than that of HasRoomForPath(), so that a path is
  // not opened and closed again and again.
  int64_t Excess() const { return free > Reserve() ? 0 : Reserve() + 1 - free; }

  // Returns OK if HasRoomForPath(). Otherwise returns RESOURCE_EXHAUSTED with
  // the remedy.
  absl::Status CheckForPath() const;
  // Returns the RESOURCE_EXHAUSTED of CheckForPath(). The text depends only on
  // the limit, so that a log need not repeat the text.
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
