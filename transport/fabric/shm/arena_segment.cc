#include "transport/fabric/shm/arena_segment.h"

#include <atomic>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "transport/base/log.h"
#include "transport/base/steady_time.h"

namespace penstock {
namespace fabric {
namespace shm {
namespace {

constexpr char kSegmentName[] = "penstock-arena";
// The size of the segment's first part, in which each allocation begins after
// the previous one (see memory::RangeAllocator). Writing to memory that the
// reader's core still has in its first-level cache is slow, so a new message
// should not reuse such memory. A part of this size fits into a second-level
// cache together with the application's data.
constexpr uint64_t kRovingBytes = 1024 * 1024;
// The pause after a failed attempt to make a segment. A failed attempt may
// clear most of a segment. Without the pause, each large message would cause
// another attempt.
constexpr absl::Duration kPause = absl::Seconds(1);

// The next id of a segment. All arenas of the process share it, so that a peer
// of two arenas never sees the same id twice.
std::atomic<uint32_t> next_segment_id{1};

}  // namespace

ArenaSegment::ArenaSegment(Segment segment, uint32_t id,
                           bool has_reserved_pages)
    : memory(std::move(segment)),
      id(id),
      has_reserved_pages(has_reserved_pages),
      private_in_child(memory, has_reserved_pages),
      ranges(memory.size(), kRovingBytes) {
  // Declares the segment as stable, so that an RDMA device keeps it registered.
  // If the declaration fails, the device registers the memory for each use.
  auto declared = memory::StableMemory::Declare(memory.data(), memory.size());
  if (declared.ok()) stable = *std::move(declared);
}

Place ArenaSegment::At(uint64_t offset) const {
  Place place;
  place.segment_id = id;
  place.segment_fd = memory.fd();
  place.segment_size = memory.size();
  place.offset = offset;
  return place;
}

absl::StatusOr<std::unique_ptr<ArenaSegment>> ArenaSegmentMaker::Make(
    uint64_t size) {
  const absl::Time now = base::SteadyNow();
  if (now < next_attempt_) return no_memory_;
  absl::StatusOr<std::unique_ptr<ArenaSegment>> segment = Create(size);
  if (!segment.ok()) {
    no_memory_ = segment.status();
    next_attempt_ = now + kPause;
  }
  return segment;
}

absl::StatusOr<std::unique_ptr<ArenaSegment>> ArenaSegmentMaker::Create(
    uint64_t size) {
  // Uses reserved pages only if `size` is a multiple of a huge page. The last
  // segment may have another size, because it gets the rest of the budget.
  bool is_reserved =
      huge_pages_ == HugePages::kReserved && size % kHugePageBytes == 0;
  absl::StatusOr<Segment> memory = absl::UnknownError("none");
  if (is_reserved) {
    memory = Segment::Create(kSegmentName, size, HugePages::kReserved);
    if (!memory.ok()) SayWhyNotReserved(memory.status());
    is_reserved = memory.ok();
  }
  if (!is_reserved) {
    memory = Segment::Create(kSegmentName, size,
                             huge_pages_ == HugePages::kOff
                                 ? HugePages::kOff
                                 : HugePages::kTransparent);
  }
  if (!memory.ok()) return memory.status();
  return absl::make_unique<ArenaSegment>(
      *std::move(memory),
      next_segment_id.fetch_add(1, std::memory_order_relaxed), is_reserved);
}

void ArenaSegmentMaker::SayWhyNotReserved(const absl::Status& cause) {
  if (said_why_not_) return;
  said_why_not_ = true;
  base::LogWarning(absl::StrCat(
      "large messages over shm have no reserved huge pages: ", cause.message(),
      "; ordinary pages are used"));
}

}  // namespace shm
}  // namespace fabric
}  // namespace penstock
