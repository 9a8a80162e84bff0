// A descriptor that is readable as long as something waits behind it.

#ifndef PENSTOCK_TESTS_TRANSPORT_FABRIC_VERBS_FAKE_EVENT_FD_H_
#define PENSTOCK_TESTS_TRANSPORT_FABRIC_VERBS_FAKE_EVENT_FD_H_

#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace penstock {
namespace fabric {
namespace verbs {

// Blocking until its user says otherwise with fcntl, as the libraries' own.
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
  // What the last Signal() announced is no more. Never blocks.
  void TakeBack() {
    uint64_t one;
    iovec part = {&one, sizeof one};
    (void)!preadv2(fd_, &part, 1, -1, RWF_NOWAIT);
  }
  // Blocks unless the descriptor does not; false with errno.
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

#endif  // PENSTOCK_TESTS_TRANSPORT_FABRIC_VERBS_FAKE_EVENT_FD_H_
