#include "transport/fabric/shm/control.h"

#include <new>
#include <utility>

namespace penstock {
namespace fabric {
namespace shm {
namespace {

constexpr uint32_t kMagic = 0x4b434e50;  // "PNCK"
constexpr uint64_t kMinRingBytes = 128 * 1024;
// Limits the memory that this process allocates for each peer whose ring grows.
// Penstock's own rings have 256 KiB.
constexpr uint64_t kMaxRingBytes = 1024 * 1024;
constexpr uint64_t kFirstBytes = kRingOffset + kFirstRingBytes;

}  // namespace

bool IsRingSize(uint64_t ring_bytes) {
  return ring_bytes >= kMinRingBytes && ring_bytes <= kMaxRingBytes &&
         (ring_bytes & (ring_bytes - 1)) == 0;
}

absl::StatusOr<Segment> CreateControl(uint32_t ring_bytes, uint32_t features) {
  absl::StatusOr<Segment> segment = Segment::CreatePart(
      "penstock-control", kRingOffset + ring_bytes, kFirstBytes);
  if (!segment.ok()) return segment.status();
  absl::Status populated =
      Populate(segment->data(), kFirstBytes, Access::kWrite);
  if (!populated.ok()) return populated;
  ControlPage* page = new (segment->data()) ControlPage();
  page->magic = kMagic;
  page->version = kLayoutVersion;
  page->ring_bytes = ring_bytes;
  page->features = features;
  // Starts armed. A peer that writes before the endpoint is polled then rings
  // unnecessarily, which is harmless.
  page->armed.store(1, std::memory_order_release);
  return segment;
}

absl::StatusOr<PeerSegment> MapControl(progress::ForeignFd fd,
                                       uint64_t ring_bytes) {
  if (!IsRingSize(ring_bytes)) {
    return absl::InvalidArgumentError("the peer's ring has a bad size");
  }
  absl::StatusOr<PeerSegment> segment = PeerSegment::MapPart(
      std::move(fd), kRingOffset + ring_bytes, kFirstBytes);
  if (!segment.ok()) return segment.status();
  absl::Status populated =
      Populate(segment->data(), kFirstBytes, Access::kRead);
  if (!populated.ok()) return populated;
  const ControlPage* page = PageOf(*segment);
  if (page->magic != kMagic || page->version != kLayoutVersion ||
      page->ring_bytes != ring_bytes) {
    return absl::InvalidArgumentError(
        "the peer's control page is of another layout");
  }
  return segment;
}

}  // namespace shm
}  // namespace fabric
}  // namespace penstock
