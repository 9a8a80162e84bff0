// The memory that one side of a connection writes and the other reads.

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

// Bumped with every change of ControlPage, of the ring or of the set-up.
constexpr uint16_t kLayoutVersion = 5;

// No more loans are out at a time, so that their releases always have room.
constexpr uint32_t kMaxLoans = 1024;

// The head of a control segment; the ring's bytes follow. Written by its owner
// alone: the peer maps it to be read only. Nothing that is read from a peer's
// page is believed. What is written at different times by different threads
// has a cache line of its own.
struct ControlPage {
  uint32_t magic;
  uint32_t version;
  uint32_t ring_bytes;  // when it has grown

  // Bytes ever written into this page's ring.
  alignas(64) std::atomic<uint64_t> head;
  // A message did not fit: the consumer is to say when there is room. On the
  // head's line, which the consumer reads anyway.
  std::atomic<uint32_t> sender_waits;
  // The endpoint is gone; nothing more will be written.
  std::atomic<uint32_t> closed;

  // Bytes ever consumed from the peer's ring.
  alignas(64) std::atomic<uint64_t> tail;

  // The peer is to ring after writing.
  alignas(64) std::atomic<uint32_t> armed;

  // Loans of the peer's given back: entries ever written, and their ring.
  alignas(64) std::atomic<uint64_t> release_head;
  std::atomic<uint32_t> releases[kMaxLoans];
};

static_assert(ATOMIC_LLONG_LOCK_FREE == 2 && ATOMIC_INT_LOCK_FREE == 2,
              "atomics in shared memory need no lock");

// Where the ring begins in the segment: the page above, rounded up.
constexpr uint64_t kRingOffset = 8192;
static_assert(sizeof(ControlPage) <= kRingOffset, "the page fits");

// What of a ring is in use, and allocated, until more is under way: a frame or
// two. So an idle connection costs 16 KiB on each side.
constexpr uint64_t kFirstRingBytes = 8 * 1024;

// Whether a ring may be so large: a power of two that holds a few messages of
// the largest size, and bounded, as a peer chooses its own.
bool IsRingSize(uint64_t ring_bytes);

// The segment for a ring of that size, ready for a peer. Its page and the first
// part of its ring are allocated and populated.
absl::StatusOr<Segment> CreateControl(uint32_t ring_bytes);
// Maps a peer's.
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
