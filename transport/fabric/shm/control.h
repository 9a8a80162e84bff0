// The control segment: the memory of a connection that one side writes and the
// other reads. Each side has one.

#ifndef PENSTOCK_TRANSPORT_FABRIC_SHM_CONTROL_H_
#define PENSTOCK_TRANSPORT_FABRIC_SHM_CONTROL_H_

#include <atomic>
#include <cstdint>

#include "absl/status/statusor.h"
#include "transport/fabric/shm/segment.h"
#include "transport/progress/foreign_fd.h"

namespace penstock {
namespace fabric {
namespace shm {

// Changes with ControlPage, the ring or the set-up messages. What a side only
// uses after the other one has asked for it by a feature does not change it.
constexpr uint16_t kLayoutVersion = 5;

// A bit of ControlPage::features: this side opens allocations of devices'
// memory, uses them in place, and says when it has closed them. Bit 1 is that
// of builds which did not say so, and is ignored.
constexpr uint32_t kOpensDevices = 2;

// The most loans that are out at a time. Their releases always have room.
constexpr uint32_t kMaxLoans = 1024;

// The beginning of a control segment, before the ring. Its owner writes it; the
// peer has it mapped read-only, and believes nothing in it unchecked. Fields
// that different threads write at different times have cache lines of their
// own.
struct ControlPage {
  uint32_t magic;
  uint32_t version;
  uint32_t ring_bytes;  // once it has grown
  // Bits that say what the peer may send. Those that it does not know are
  // ignored; a side that is older than they are has none.
  uint32_t features;

  // Counts the bytes ever written into this segment's ring.
  alignas(64) std::atomic<uint64_t> head;
  // Is 1 while a packet did not fit: the consumer then rings when it has made
  // room. Shares the head's line, which the consumer reads anyway.
  std::atomic<uint32_t> sender_waits;
  // Is 1 once the endpoint is gone and writes nothing more.
  std::atomic<uint32_t> closed;

  // Counts the bytes ever consumed from the peer's ring.
  alignas(64) std::atomic<uint64_t> tail;

  // Is 1 while the peer is to ring after writing.
  alignas(64) std::atomic<uint32_t> armed;

  // Counts the loans of the peer's ever given back. `releases` is a ring of
  // their numbers.
  alignas(64) std::atomic<uint64_t> release_head;
  std::atomic<uint32_t> releases[kMaxLoans];
};

static_assert(ATOMIC_LLONG_LOCK_FREE == 2 && ATOMIC_INT_LOCK_FREE == 2,
              "atomics in shared memory need no lock");

// Where the ring begins in the segment: behind the page, at whole 4 KiB.
constexpr uint64_t kRingOffset = 8192;
static_assert(sizeof(ControlPage) <= kRingOffset, "the page fits");

// The part of a ring that is used and allocated until more is under way: a
// frame or two. So an idle connection costs 16 KiB on each side.
constexpr uint64_t kFirstRingBytes = 8 * 1024;

// Returns whether a ring may have this size: a power of two, large enough for a
// few of the largest packets, and bounded, since a peer chooses its own.
bool IsRingSize(uint64_t ring_bytes);

// Makes the segment for a ring of that size, ready to be passed to a peer.
// Allocates and maps its page and the first part of its ring.
absl::StatusOr<Segment> CreateControl(uint32_t ring_bytes,
                                      uint32_t features = 0);
// Maps a peer's control segment. Returns an error if it is not of this layout.
absl::StatusOr<PeerSegment> MapControl(progress::ForeignFd fd,
                                       uint64_t ring_bytes);

inline ControlPage* PageOf(const Segment& segment) {
  return reinterpret_cast<ControlPage*>(segment.data());
}
inline const ControlPage* PageOf(const PeerSegment& segment) {
  return reinterpret_cast<const ControlPage*>(segment.data());
}

}  // namespace shm
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_SHM_CONTROL_H_
