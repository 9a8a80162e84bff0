// Descriptors whose closing may block.

#ifndef PENSTOCK_TRANSPORT_PROGRESS_FOREIGN_FD_H_
#define PENSTOCK_TRANSPORT_PROGRESS_FOREIGN_FD_H_

#include <cstdint>

#include "transport/base/unique_fd.h"

namespace penstock {
namespace progress {

// The one owner of a descriptor that somebody else has a say in. To close the
// last one of a TCP socket waits for what is unsent, if the stranger who passed
// it has asked for that; of a file in user space, for the stranger's program;
// of memory, for the kernel to free its pages. A UNIX socket's may close all of
// these, which were sent to it and not received. So they are closed aside
// (aside.h), in order. In a forked child, where another descriptor is left, at
// once.
class ForeignFd {
 public:
  ForeignFd() = default;
  // Implicit: to be closed aside is never wrong.
  ForeignFd(base::UniqueFd fd);
  ForeignFd(ForeignFd&& other) noexcept;
  ForeignFd& operator=(ForeignFd&& other) noexcept;
  ~ForeignFd() { Reset(); }

  int get() const { return fd_.get(); }
  bool valid() const { return fd_.valid(); }
  // Whether this process came by it in being forked.
  bool is_of_parent() const;
  void Reset();
  // For one that is known to be closed without waiting, by now.
  void ResetHere() { fd_.Reset(); }

 private:
  base::UniqueFd fd_;
  uint32_t fork_count_ = 0;
};

}  // namespace progress
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_PROGRESS_FOREIGN_FD_H_
