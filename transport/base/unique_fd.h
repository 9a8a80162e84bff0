// An owner of a file descriptor, which closes it.

#ifndef PENSTOCK_TRANSPORT_BASE_UNIQUE_FD_H_
#define PENSTOCK_TRANSPORT_BASE_UNIQUE_FD_H_

#include <unistd.h>

namespace penstock {
namespace base {

class UniqueFd {
 public:
  UniqueFd() = default;
  // Takes ownership; a negative `fd` means none.
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(other.Release()) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) Reset(other.Release());
    return *this;
  }
  ~UniqueFd() { Reset(); }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }

  // Gives the descriptor to the caller, who closes it.
  int Release() {
    int fd = fd_;
    fd_ = -1;
    return fd;
  }
  // Closes the descriptor and takes ownership of `fd`.
  void Reset(int fd = -1) {
    if (fd_ >= 0) close(fd_);
    fd_ = fd;
  }

 private:
  int fd_ = -1;
};

}  // namespace base
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_BASE_UNIQUE_FD_H_
