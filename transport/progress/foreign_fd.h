// Owns a descriptor whose closing may block.

#ifndef PENSTOCK_TRANSPORT_PROGRESS_FOREIGN_FD_H_
#define PENSTOCK_TRANSPORT_PROGRESS_FOREIGN_FD_H_

#include <cstdint>

#include "transport/base/unique_fd.h"

namespace penstock {
namespace progress {

// Owns a descriptor that came from a stranger, or may carry such descriptors,
// and closes it on a thread of Aside::kClosing. Closing the last descriptor may
// take long: a TCP socket may wait for unsent data, if the stranger has set it
// up so; a file in user space waits for the stranger's program; memory waits
// for the kernel to free its pages. A UNIX socket may hold all of these, sent
// but not received, and closes them with itself. In the child of a fork the
// parent still has the descriptor, so it is closed here and now. Not
// thread-safe.
class ForeignFd {
 public:
  ForeignFd() = default;
  // Implicit, because closing any descriptor aside is correct.
  ForeignFd(base::UniqueFd fd);
  ForeignFd(ForeignFd&& other) noexcept;
  ForeignFd& operator=(ForeignFd&& other) noexcept;
  ~ForeignFd() { Reset(); }

  int get() const { return fd_.get(); }
  bool valid() const { return fd_.valid(); }
  // Whether the descriptor was opened before this process was forked.
  bool is_of_parent() const;
  // Closes the descriptor aside, or at once if it is the parent's.
  void Reset();
  // Closes the descriptor at once, if the caller knows that this cannot block.
  void ResetHere() { fd_.Reset(); }

 private:
  base::UniqueFd fd_;
  uint32_t fork_count_ = 0;
};

}  // namespace progress
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_PROGRESS_FOREIGN_FD_H_
