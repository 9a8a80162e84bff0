// Keeps forked children from writing into their parent's shared memory.

#ifndef PENSTOCK_TRANSPORT_FABRIC_SHM_PRIVATE_IN_CHILD_H_
#define PENSTOCK_TRANSPORT_FABRIC_SHM_PRIVATE_IN_CHILD_H_

#include <sys/types.h>

#include <cstdint>

#include "transport/fabric/shm/segment.h"

namespace penstock {
namespace fabric {
namespace shm {

// Makes a segment private to each child that this process forks while this
// object lives. The child's mapping then lies at the same addresses and shows
// the same bytes, but the child's writes go to pages of its own. A page that
// the child has not written to goes on showing what the parent writes.
//
// Pages of 2 MiB that are reserved are scarce, so the child can only read
// those: a write kills it. The same holds where the child can map no more.
//
// Costs the child four system calls, about 6 us, for each segment, and the
// parent nothing. Works by pthread_atfork(), and so for fork(), but not for a
// bare clone(). vfork() and posix_spawn() share no memory that the child uses.
// Thread-safe.
class PrivateInChild {
 public:
  // `segment` must keep its descriptor, and outlive this.
  PrivateInChild(const Segment& segment, bool has_reserved_pages);
  PrivateInChild(const PrivateInChild&) = delete;
  PrivateInChild& operator=(const PrivateInChild&) = delete;
  ~PrivateInChild();

 private:
  class Registry;

  // These run in the child, and so call only what is async-signal-safe.
  void TakeAwayFromParent() const;
  bool MapPrivately() const;
  // Returns whether fd_ is still the segment's: programs close descriptors
  // that are not theirs.
  bool HasDescriptor() const;
  bool IsMapped() const;

  uint8_t* const data_;
  const uint64_t size_;
  const int fd_;
  const bool has_reserved_pages_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  // The neighbours in the registry's list.
  PrivateInChild* next_ = nullptr;
  PrivateInChild* previous_ = nullptr;
};

}  // namespace shm
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_SHM_PRIVATE_IN_CHILD_H_
