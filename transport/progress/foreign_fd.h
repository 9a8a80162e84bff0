// An owner of a descriptor whose closing may block.

#ifndef PENSTOCK_TRANSPORT_PROGRESS_FOREIGN_FD_H_
#define PENSTOCK_TRANSPORT_PROGRESS_FOREIGN_FD_H_

#include <cstdint>

#include "transport/base/unique_fd.h"

namespace penstock {
namespace progress {

// Owns a descriptor that came from a peer, or that may carry descriptors of a
// peer, and closes it on a thread of Aside::kClosing. Closing the last
// reference may take long:
// - a TCP socket may wait for unsent data, if the peer has set SO_LINGER;
// - a file in user space waits for the peer's program;
// - memory waits for the kernel to free its pages;
// - a UNIX socket closes all descriptors that were sent and not received.
//
// In the child of a fork the parent still has the descriptor, so the child
// closes it immediately. Not thread-safe.
class ForeignFd {
 public:
  ForeignFd() = default;
  // Takes ownership of a descriptor. Implicit, because closing a descriptor on
  // another thread is always correct.
  ForeignFd(base::UniqueFd fd);
  ForeignFd(ForeignFd&& other) noexcept;
  ForeignFd& operator=(ForeignFd&& other) noexcept;
  ~ForeignFd() { Reset(); }

  int get() const { return fd_.get(); }
  bool valid() const { return fd_.valid(); }
  // Returns true if the descriptor was opened before this process was forked.
  bool is_of_parent() const;
  // Closes the descriptor on a thread of Aside::kClosing, or immediately if the
  // descriptor belongs to the parent.
  void Reset();
  // Closes the descriptor immediately. Call only if closing cannot block.
  void ResetHere() { fd_.Reset(); }

 private:
  base::UniqueFd fd_;
  uint32_t fork_count_ = 0;
};

}  // namespace progress
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_PROGRESS_FOREIGN_FD_H_
