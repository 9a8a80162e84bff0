// A segment of an arena, and the maker of segments.

#ifndef PENSTOCK_TRANSPORT_FABRIC_SHM_ARENA_SEGMENT_H_
#define PENSTOCK_TRANSPORT_FABRIC_SHM_ARENA_SEGMENT_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "transport/fabric/shm/huge_pages.h"
#include "transport/fabric/shm/private_in_child.h"
#include "transport/fabric/shm/segment.h"
#include "transport/memory/range_allocator.h"
#include "transport/memory/stable_memory.h"

namespace penstock {
namespace fabric {
namespace shm {

// The location of memory in an arena, for a peer: the segment and the offset.
struct Place {
  uint32_t segment_id = 0;
  int segment_fd = -1;  // owned by the arena; open while the memory is leased
  uint64_t segment_size = 0;
  uint64_t offset = 0;
};

// A segment, and which parts of it are leased.
struct ArenaSegment {
  ArenaSegment(Segment segment, uint32_t id, bool has_reserved_pages);

  // Returns the location of the segment's byte `offset`.
  Place At(uint64_t offset) const;

  const Segment memory;
  const uint32_t id;
  const bool has_reserved_pages;
  // The two members below must be destroyed before `memory`.
  PrivateInChild private_in_child;
  std::unique_ptr<memory::StableMemory> stable;
  // The members below are guarded by the arena's mutex.
  memory::RangeAllocator ranges;
  bool was_used = false;  // since the last check
};

// Makes segments. If the system has no memory, tries again only after a second.
// If there are no huge pages of the wanted kind, uses ordinary pages, and logs
// the reason once. Used by one thread at a time.
class ArenaSegmentMaker {
 public:
  explicit ArenaSegmentMaker(HugePages huge_pages) : huge_pages_(huge_pages) {}

  HugePages huge_pages() const { return huge_pages_; }
  // Makes a segment, and clears all its pages, which takes tens of milliseconds
  // for a large segment. Returns RESOURCE_EXHAUSTED if the system has no
  // memory.
  absl::StatusOr<std::unique_ptr<ArenaSegment>> Make(uint64_t size);

 private:
  absl::StatusOr<std::unique_ptr<ArenaSegment>> Create(uint64_t size);
  void SayWhyNotReserved(const absl::Status& cause);

  const HugePages huge_pages_;
  bool said_why_not_ = false;
  // The last failure, and the time until which Make() keeps returning it.
  absl::Status no_memory_;
  absl::Time next_attempt_;
};

}  // namespace shm
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_SHM_ARENA_SEGMENT_H_
