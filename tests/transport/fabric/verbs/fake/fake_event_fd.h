// A descriptor that is readable while events wait.

#ifndef PENSTOCK_TESTS_TRANSPORT_FABRIC_VERBS_FAKE_FAKE_EVENT_FD_H_
#define PENSTOCK_TESTS_TRANSPORT_FABRIC_VERBS_FAKE_FAKE_EVENT_FD_H_

#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace penstock {
namespace fabric {
namespace verbs {

// The descriptor blocks, like those of the real libraries, unless its user
// changes that with fcntl().
class FakeEventFd {
 public:
  FakeEventFd() : fd_(eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC)) {}
  ~FakeEventFd() { close(fd_); }
  FakeEventFd(const FakeEventFd&) = delete;
  FakeEventFd& operator=(const FakeEventFd&) = delete;

  int fd() const { return fd_; }
  void Signal() {
    const uint64_t one = 1;
    (void)!write(fd_, &one, sizeof one);
  }
  // Cancels one Signal(). Never blocks.
  void TakeBack() {
    uint64_t one;
    iovec part = {&one, sizeof one};
    (void)!preadv2(fd_, &part, 1, -1, RWF_NOWAIT);
  }
  // Takes one Signal(). Blocks if the descriptor does. Returns false, with
  // errno, on failure.
  static bool Take(int fd) {
    uint64_t one;
    ssize_t got;
    do {
      got = read(fd, &one, sizeof one);
    } while (got < 0 && errno == EINTR);
    return got == sizeof one;
  }

 private:
  const int fd_;
};

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TESTS_TRANSPORT_FABRIC_VERBS_FAKE_FAKE_EVENT_FD_H_
