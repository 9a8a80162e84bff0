#include "transport/grpc/polling/epoll_set.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>

#include "transport/base/unique_fd.h"
#include "transport/progress/fork_count.h"

namespace penstock {
namespace core {

constexpr int EpollSet::kUnknown;
constexpr int EpollSet::kNone;

// Makes the same change for `fd` in each candidate descriptor. Only the epoll
// set that contains `fd` accepts the change, which writes the same values as
// gRPC did.
int FindEpollSet(int fd, grpc_fd* entry) {
  // Caps the searched descriptors. gRPC makes its set before the first channel.
  // Therefore the set has a low number, unless the program had many open
  // descriptors at that time.
  constexpr int kSearched = 4096;
  epoll_event same = {};
  same.events = EPOLLIN | EPOLLOUT | EPOLLET;
  same.data.ptr = entry;
  for (int set = 0; set < kSearched; ++set) {
    if (epoll_ctl(set, EPOLL_CTL_MOD, fd, &same) == 0) return set;
  }
  return -1;
}

bool EpollSet::IsKnown() {
  const uint32_t fork_count = progress::ForkCount();
  if (fd_ == kUnknown || fork_count != fork_count_) {
    fork_count_ = fork_count;
    fd_ = Search();
  }
  return fd_ != kNone;
}

// Finds the epoll set by adding a descriptor to it through gRPC. The descriptor
// is a timer that never expires, so it causes no event.
int EpollSet::Search() const {
  base::UniqueFd timer(
      timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!timer.valid()) return kNone;
  const int timer_fd = timer.Release();  // gRPC closes it
  grpc_fd* const entry =
      engine_.fd_create(timer_fd, "penstock-epoll-set", /*track_err=*/false);
  const int found = FindEpollSet(timer_fd, entry);
  engine_.fd_orphan(entry, nullptr, nullptr, "penstock-epoll-set");
  return found;
}

bool EpollSet::MayHaveEvents() {
  if (!IsKnown()) return true;
  pollfd set = {};
  set.fd = fd_;
  set.events = POLLIN;
  return poll(&set, 1, /*timeout=*/0) > 0;
}

}  // namespace core
}  // namespace penstock
