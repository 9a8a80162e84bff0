// Shared memory for payloads that peers read in place.

#ifndef PENSTOCK_TRANSPORT_FABRIC_SHM_ARENA_H_
#define PENSTOCK_TRANSPORT_FABRIC_SHM_ARENA_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "transport/fabric/shm/huge_pages.h"
#include "transport/fabric/shm/segment.h"
#include "transport/memory/range_allocator.h"

namespace penstock {
namespace fabric {
namespace shm {

class Arena;

// Where memory of an arena lies, for a peer.
struct Place {
  uint32_t segment_id = 0;
  int segment_fd = -1;  // the arena's
  uint64_t segment_size = 0;
  uint64_t offset = 0;
};

// A part of an arena. Given back, on any thread, when it is destroyed.
class Lease {
 public:
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  ~Lease();

  uint8_t* data() const;
  uint64_t size() const { return size_; }
  Place place() const;

 private:
  friend class Arena;
  struct Room;

  Lease(std::shared_ptr<Arena> arena, Room* room, uint64_t offset,
        uint64_t size);

  const std::shared_ptr<Arena> arena_;
  Room* const room_;
  const uint64_t offset_;
  const uint64_t size_;
};

// Memory that any peer of one trust domain may read: a peer that has got a
// segment sees all of it. A domain is the uid that peers run as (domains.h).
//
// Grows by segments and keeps them for good, for peers keep them mapped. The
// pages of a segment are cleared when it is made, under the lock: rare, but
// tens of milliseconds for a large one. Where the system has no memory to grow
// by, it does not ask again for a second. Where it has no huge pages of the
// kind that was asked for, segments have ordinary ones; the log says why there
// are none reserved, once. Thread-safe.
class Arena : public std::enable_shared_from_this<Arena> {
 public:
  // 1 GiB, but no more than a quarter of the machine's memory or of the
  // control group's limit.
  static uint64_t DefaultBudget();
  // At most `budget` bytes of segments in all.
  static std::shared_ptr<Arena> Create(
      uint64_t budget, HugePages huge_pages = HugePages::kTransparent);

  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena();

  // RESOURCE_EXHAUSTED where the budget or the memory has no room.
  absl::StatusOr<std::shared_ptr<Lease>> Allocate(uint64_t size);
  // Where `size` bytes at `data` lie, if that is in this arena; whoever has
  // them has a lease of them.
  absl::optional<Place> Find(const uint8_t* data, uint64_t size) const;

  // Bytes in leases, and bytes in segments.
  uint64_t used() const;
  uint64_t reserved() const;
  // Which of them lie in reserved huge pages, for people; empty where none were
  // asked for, or there are no segments yet.
  std::string Describe() const;

 private:
  friend class Lease;

  Arena(uint64_t budget, HugePages huge_pages);

  absl::StatusOr<Lease::Room*> GrowLocked(uint64_t size);
  absl::StatusOr<Segment> NewSegmentLocked(uint64_t size);
  absl::StatusOr<Segment> CreateSegmentLocked(uint64_t size);
  void SayWhyNotReservedLocked(const absl::Status& cause);
  void Free(const Lease& lease);

  const uint64_t budget_;
  const HugePages huge_pages_;

  mutable std::mutex mu_;  // guards the rest
  uint64_t reserved_ = 0;
  uint64_t in_reserved_pages_ = 0;  // of these bytes
  bool said_why_not_ = false;
  absl::Status no_memory_;  // of the last growth, where it failed
  absl::Time next_growth_;  // SteadyNow(); until then it is the answer
  std::vector<std::unique_ptr<Lease::Room>> rooms_;
};

}  // namespace shm
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_SHM_ARENA_H_
