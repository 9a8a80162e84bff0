// Sealed anonymous memory (memfd) that two processes share.

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

// Returns OK if the kernel supports Populate(), which needs Linux 5.14.
// Otherwise returns UNAVAILABLE, with the reason for people.
absl::Status CheckKernel();

// The kind of access that Populate() makes safe. Populate() pre-faults [data,
// data + size), so that no later access can fail or fault, because the memory
// is sealed. Allocates pages that the peer left unallocated, within this
// process's limit. Returns RESOURCE_EXHAUSTED if memory runs out.
enum class Access { kRead, kWrite };
absl::Status Populate(const uint8_t* data, uint64_t size, Access access);

// Checks memory that a peer sent. Returns OK if `fd` is a sealed memfd of
// `size` bytes, has a supported page size, and has at least `size` bytes of
// allocated blocks. Otherwise returns FAILED_PRECONDITION or INVALID_ARGUMENT.
// May miss a hole, because blocks beyond `size` count, too: see CheckForHole().
absl::Status CheckPeerMemory(int fd, uint64_t size);

// The size, in bytes, of the parts in which a peer's memory is searched for
// holes. Searching a part takes about 125 us.
//
// CheckForHole() returns FAILED_PRECONDITION if [offset, offset + length) has a
// hole. The search allocates the range: if there is a hole, this takes new
// memory, which is charged to this process. The seals prevent later holes.
constexpr uint64_t kHolePartBytes = 2 * 1024 * 1024;
absl::Status CheckForHole(int fd, uint64_t offset, uint64_t length);

// Memory of this process that its peers may read. The memory is allocated and
// sealed: no access can fail (SIGBUS), and only this mapping can write.
// Move-only; unmaps and closes when destroyed.
class Segment {
 public:
  // Makes a segment of `size` bytes, rounded up to pages. `name` is for people
  // (/proc/PID/maps). Returns RESOURCE_EXHAUSTED if there is no memory, or if
  // too few huge pages are reserved. Returns another error if reserved huge
  // pages are impossible.
  static absl::StatusOr<Segment> Create(const char* name, uint64_t size,
                                        HugePages huge_pages = HugePages::kOff);
  // Makes a segment of ordinary pages, like Create(), but allocates only the
  // first `part` bytes. Call Populate() before accessing the rest.
  static absl::StatusOr<Segment> CreatePart(const char* name, uint64_t size,
                                            uint64_t part);

  uint8_t* data() const { return mapping_.data(); }
  size_t size() const { return mapping_.size(); }
  // Returns the descriptor to pass to peers. Closed on exec.
  int fd() const { return fd_.get(); }
  // Closes the descriptor. Afterwards no further peer can get the segment.
  void CloseFd() { fd_.Reset(); }

 private:
  // Makes a segment of an empty memfd. `size` is a multiple of the page size.
  static absl::StatusOr<Segment> Make(base::UniqueFd fd, uint64_t size,
                                      uint64_t part, HugePages huge_pages);
  Segment(base::UniqueFd fd, Mapping mapping);

  base::UniqueFd fd_;
  Mapping mapping_;
};

// A peer's segment, mapped read-only. The peer may change the bytes at any
// time: copy, then check, then use the copy. Move-only; unmaps when destroyed.
class PeerSegment {
 public:
  // Maps all of `fd`. Returns FAILED_PRECONDITION or INVALID_ARGUMENT unless
  // `fd` is a memfd of exactly `size` bytes that is sealed and allocated, so
  // that no access can fail.
  static absl::StatusOr<PeerSegment> Map(progress::ForeignFd fd, uint64_t size);
  // Maps like Map(), but accepts memory of which the peer has allocated only
  // the first `part` bytes. Call Populate() before accessing the rest.
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
