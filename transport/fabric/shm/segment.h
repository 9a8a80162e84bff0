// Sealed anonymous memory that is shared between two processes.

#ifndef PENSTOCK_TRANSPORT_FABRIC_SHM_SEGMENT_H_
#define PENSTOCK_TRANSPORT_FABRIC_SHM_SEGMENT_H_

#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "transport/base/unique_fd.h"
#include "transport/fabric/shm/huge_pages.h"
#include "transport/fabric/shm/mapping.h"
#include "transport/progress/foreign_fd.h"

namespace penstock {
namespace fabric {
namespace shm {

// Whether the kernel can Populate(): Linux 5.14. UNAVAILABLE says so.
absl::Status CheckKernel();

// Has all pages of [data, data + size) there and mapped, so that no access to
// them can fail or fault afterwards, as their memory is sealed. What the other
// side has not allocated is, within this memory's limits. RESOURCE_EXHAUSTED
// where there is no memory.
enum class Access { kRead, kWrite };
absl::Status Populate(const uint8_t* data, uint64_t size, Access access);

// Whether `fd`, a peer's, is a memfd of `size` bytes, in pages of a kind that
// is known, sealed, and has as many blocks: FAILED_PRECONDITION,
// INVALID_ARGUMENT. Where these lie is another question: there may be some
// behind the end, which make up for holes before it.
absl::Status CheckPeerMemory(int fd, uint64_t size);

// Whether [offset, offset + length) has no hole: FAILED_PRECONDITION. It is
// allocated anew, and needs no block for that unless there is one, which then
// costs this process the range. About 125 us for a part of this size. The seals
// keep holes from being made later.
constexpr uint64_t kHolePartBytes = 2 * 1024 * 1024;
absl::Status CheckForHole(int fd, uint64_t offset, uint64_t length);

// Memory of this process's, which its peers may read. It is allocated and
// sealed, so nobody can make an access to it fail (SIGBUS), and nobody but this
// mapping can write to it.
class Segment {
 public:
  // `size` is rounded up to pages. RESOURCE_EXHAUSTED where memory lacks, or
  // where not so many huge pages are reserved; another error where there can be
  // none.
  static absl::StatusOr<Segment> Create(const char* name, uint64_t size,
                                        HugePages huge_pages = HugePages::kOff);
  // Only the first `part` bytes are allocated, in ordinary pages; Populate()
  // what follows before it is touched.
  static absl::StatusOr<Segment> CreatePart(const char* name, uint64_t size,
                                            uint64_t part);

  uint8_t* data() const { return mapping_.data(); }
  size_t size() const { return mapping_.size(); }
  // What a peer is sent. Closed on exec.
  int fd() const { return fd_.get(); }
  // No further peer gets it.
  void CloseFd() { fd_.Reset(); }

 private:
  // Made of an empty memfd, `size` being whole pages.
  static absl::StatusOr<Segment> Make(base::UniqueFd fd, uint64_t size,
                                      uint64_t part, HugePages huge_pages);
  Segment(base::UniqueFd fd, Mapping mapping);

  base::UniqueFd fd_;
  Mapping mapping_;
};

// A peer's segment, mapped to be read only. What is in it may change at any
// time: copy, then check, then use.
class PeerSegment {
 public:
  // Refuses (FAILED_PRECONDITION, INVALID_ARGUMENT) what is not a memfd of
  // exactly `size` bytes, or what the peer could make to fail under a reader:
  // not sealed, or not allocated. Of huge pages if its owner made it so.
  static absl::StatusOr<PeerSegment> Map(progress::ForeignFd fd, uint64_t size);
  // The same, where only the first `part` bytes must be allocated; Populate()
  // what follows before it is touched.
  static absl::StatusOr<PeerSegment> MapPart(progress::ForeignFd fd,
                                             uint64_t size, uint64_t part);

  const uint8_t* data() const { return mapping_.data(); }
  size_t size() const { return mapping_.size(); }

 private:
  explicit PeerSegment(Mapping mapping) : mapping_(std::move(mapping)) {}

  Mapping mapping_;
};

}  // namespace shm
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_SHM_SEGMENT_H_
