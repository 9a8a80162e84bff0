#include "tests/adversary/odd_descriptors.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

namespace penstock::adversary {

OddDescriptors::OddDescriptors()
    : unsealed_(page::kRing + page::kRingBytes, /*sealed=*/false),
      small_(4096) {
  WritePageHead(unsealed_.data());
  WritePageHead(small_.data());
  int ends[2];
  (void)!pipe(ends);
  own_ = {ends[0],
          ends[1],
          open("/dev/null", O_RDWR),
          open("/dev/zero", O_RDWR),
          open("/", O_RDONLY | O_DIRECTORY),
          open("/proc/self/mem", O_RDONLY),
          epoll_create1(0),
          eventfd(0, 0),
          socket(AF_UNIX, SOCK_STREAM, 0)};
  fds_ = own_;
  fds_.insert(fds_.end(), {unsealed_.fd(), small_.fd()});
}

OddDescriptors::~OddDescriptors() {
  for (int fd : own_) close(fd);
}

}  // namespace penstock::adversary
