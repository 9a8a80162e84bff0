#include "transport/progress/foreign_fd.h"

#include <unistd.h>

#include <utility>

#include "transport/progress/aside.h"
#include "transport/progress/fork_count.h"

namespace penstock {
namespace progress {

ForeignFd::ForeignFd(base::UniqueFd fd)
    : fd_(std::move(fd)), fork_count_(ForkCount()) {}

ForeignFd::ForeignFd(ForeignFd&& other) noexcept
    : fd_(std::move(other.fd_)), fork_count_(other.fork_count_) {}

ForeignFd& ForeignFd::operator=(ForeignFd&& other) noexcept {
  if (this == &other) return *this;
  Reset();
  fd_ = std::move(other.fd_);
  fork_count_ = other.fork_count_;
  return *this;
}

bool ForeignFd::is_of_parent() const { return fork_count_ != ForkCount(); }

void ForeignFd::Reset() {
  if (!fd_.valid()) return;
  if (is_of_parent()) return fd_.Reset();
  const int fd = fd_.Release();
  RunAside(Aside::kClosing, [fd] { close(fd); });
}

}  // namespace progress
}  // namespace penstock
