// Descriptors whose close() blocks for as long as their sender wants.

#ifndef PENSTOCK_TESTS_TRANSPORT_PROGRESS_LINGERING_H_
#define PENSTOCK_TESTS_TRANSPORT_PROGRESS_LINGERING_H_

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "transport/base/unique_fd.h"

namespace penstock {

constexpr int kLingerSeconds = 3600;

// A TCP connection. One end has unsent data and lingers: its last close()
// blocks until the other end is gone.
class Lingering {
 public:
  Lingering() {
    base::UniqueFd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* const name = reinterpret_cast<sockaddr*>(&address);
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(listener.get(), name, size), 0);
    EXPECT_EQ(listen(listener.get(), 1), 0);
    EXPECT_EQ(getsockname(listener.get(), name, &size), 0);
    near_.Reset(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(connect(near_.get(), name, size), 0);
    far_.Reset(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    const linger lingers = {1, kLingerSeconds};
    EXPECT_EQ(setsockopt(near_.get(), SOL_SOCKET, SO_LINGER, &lingers,
                         sizeof lingers),
              0);
    const std::string bytes(1 << 20, 'x');
    while (send(near_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT) > 0) {
    }
  }

  int fd() const { return near_.get(); }
  // Closes the other end, so that no close() blocks any more.
  void End() { far_.Reset(); }
  // Closes this process's descriptor, so that the recipient's descriptor is the
  // last one.
  void LetGo() { near_.Reset(); }

 private:
  base::UniqueFd far_;  // destroyed last
  base::UniqueFd near_;
};

// Sends `bytes` with these descriptors over a UNIX socket.
inline void SendWith(int socket, const std::string& bytes,
                     const std::vector<int>& fds) {
  iovec data = {const_cast<char*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) char control[256] = {};
  msghdr header = {};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = CMSG_SPACE(fds.size() * sizeof(int));
  cmsghdr* part = CMSG_FIRSTHDR(&header);
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
  std::memcpy(CMSG_DATA(part), fds.data(), fds.size() * sizeof(int));
  ASSERT_GT(sendmsg(socket, &header, MSG_NOSIGNAL), 0);
}

}  // namespace penstock

#endif  // PENSTOCK_TESTS_TRANSPORT_PROGRESS_LINGERING_H_
