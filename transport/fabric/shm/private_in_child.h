// Keeps forked children from writing into their parent's shared memory.

#ifndef PENSTOCK_TRANSPORT_FABRIC_SHM_PRIVATE_IN_CHILD_H_
#define PENSTOCK_TRANSPORT_FABRIC_SHM_PRIVATE_IN_CHILD_H_

#include <sys/types.h>

#include <cstdint>

#include "transport/fabric/shm/segment.h"

namespace penstock {
namespace fabric {
namespace shm {

// Makes a segment private in each child that this process forks while this
// object exists. The child's mapping has the same addresses and bytes, but the
// child writes to pages of its own. A page that the child has not written still
// shows the parent's writes.
//
// Reserved pages of 2 MiB are scarce, so the child can only read them: if it
// writes, it is killed by a signal. The same is true if the child cannot map
// private pages.
//
// Costs the child four system calls for each segment, about 6 us, and the
// parent nothing. Works by pthread_atfork(), and therefore for fork() but not
// for a bare clone(). Children of vfork() and posix_spawn() use no memory of
// the parent's segments. Thread-safe.
class PrivateInChild {
 public:
  // Adds `segment` to the registry. The segment must keep its descriptor, and
  // outlive this object.
  PrivateInChild(const Segment& segment, bool has_reserved_pages);
  PrivateInChild(const PrivateInChild&) = delete;
  PrivateInChild& operator=(const PrivateInChild&) = delete;
  ~PrivateInChild();

 private:
  class Registry;

  // The functions below run in the child, so they call only async-signal-safe
  // functions.
  void TakeAwayFromParent() const;
  bool MapPrivately() const;
  // Returns true if fd_ is still the segment's descriptor. Programs may close
  // descriptors that they do not own.
  bool HasDescriptor() const;
  bool IsMapped() const;

  uint8_t* const data_;
  const uint64_t size_;
  const int fd_;
  const bool has_reserved_pages_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  // The neighbours of this object in the registry's list.
  PrivateInChild* next_ = nullptr;
  PrivateInChild* previous_ = nullptr;
};

}  // namespace shm
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_SHM_PRIVATE_IN_CHILD_H_
