// The control segment of a side: memory that this side writes and the peer
// reads. Each connection has one for each side.

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

// The version of ControlPage, of the ring and of the set-up messages. A change
// keeps the version if a side uses the change only after the peer has set a
// feature bit.
constexpr uint16_t kLayoutVersion = 5;

// A bit of ControlPage::features. A side sets the bit if it opens device
// allocations, uses them without a copy, and reports when it has closed them.
// Bit 1 belongs to older builds, which did not report closing, and is ignored.
constexpr uint32_t kOpensDevices = 2;
// A bit of ControlPage::features. A side sets the bit if it accepts a doorbell
// from the peer (kDoorbell).
constexpr uint32_t kTakesDoorbell = 4;

// Limits the open loans of a side. Also the size of ControlPage::releases, so
// the ring of releases never overflows.
constexpr uint32_t kMaxLoans = 1024;

// The beginning of a control segment, before the ring. The owner writes it; the
// peer maps it read-only, and checks every value. Fields that different threads
// write at different times are on separate cache lines.
struct ControlPage {
  uint32_t magic;
  uint32_t version;
  uint32_t ring_bytes;  // once it has grown
  // Bits that say which messages the peer may send. A side ignores unknown
  // bits. A side of an older release has no bits set.
  uint32_t features;

  // The total number of bytes written into this segment's ring.
  alignas(64) std::atomic<uint64_t> head;
  // 1 while a packet waits for room. The reader of the ring then rings when it
  // has made room. In the same cache line as the head, which the reader reads
  // anyway.
  std::atomic<uint32_t> sender_waits;
  // 1 once the endpoint neither writes nor reads any further packet.
  std::atomic<uint32_t> closed;

  // The total number of bytes consumed from the peer's ring.
  alignas(64) std::atomic<uint64_t> tail;

  // 0 while the peer need not ring after writing. If this side has passed a
  // doorbell, it writes a new value each time it arms, and the peer rings once
  // for each value. Otherwise this side writes 1, and the peer rings after each
  // write.
  alignas(64) std::atomic<uint32_t> armed;

  // The total number of returned loans of the peer. `releases` is a ring of the
  // returned loans' numbers.
  alignas(64) std::atomic<uint64_t> release_head;
  std::atomic<uint32_t> releases[kMaxLoans];
};

static_assert(ATOMIC_LLONG_LOCK_FREE == 2 && ATOMIC_INT_LOCK_FREE == 2,
              "atomics in shared memory need no lock");

// The offset of the ring in the segment: after the page, at a multiple of 4
// KiB.
constexpr uint64_t kRingOffset = 8192;
static_assert(sizeof(ControlPage) <= kRingOffset, "the page fits");

// The number of bytes of a ring that are allocated at first. This is enough for
// one or two frames, so that an idle connection costs only 16 KiB on each side.
constexpr uint64_t kFirstRingBytes = 8 * 1024;

// Returns true if a ring may have this size: a power of two, and large enough
// for a few of the largest packets. Also checks an upper limit, because the
// peer chooses the size of its own ring.
bool IsRingSize(uint64_t ring_bytes);

// Makes the segment for a ring of `ring_bytes`, for passing to a peer.
// Allocates and maps the page and the first part of the ring.
absl::StatusOr<Segment> CreateControl(uint32_t ring_bytes,
                                      uint32_t features = 0);
// Maps a peer's control segment. Returns an error if it has another layout.
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
