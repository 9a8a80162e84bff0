#include "tests/e2e/calls/odd_port.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/e2e/call.h"

namespace penstock::e2e {
namespace {

template <size_t kSize>
std::string Bytes(const char (&text)[kSize]) {
  return std::string(text, kSize - 1);
}

struct Conduct {
  const char* name;
  bool reads = true;  // reads the client's bytes before it answers
  std::string answer;
  bool hangs_up = false;
};

Conduct ConductOf(Manner manner) {
  const std::string http1 = Bytes(
      "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n"
      "Connection: close\r\n\r\n");
  // A server's SETTINGS with Penstock's private setting (docs/protocol.md).
  const std::string penstock =
      Bytes("\0\0\x06\x04\0\0\0\0\0\xfe\x10\x50\x45\x02\x02");
  const std::string settings = Bytes("\0\0\x06\x04\0\0\0\0\0\0\x03\0\0\0\x64");
  switch (manner) {
    case Manner::kHttp1:
      return {"Http1", true, http1, true};
    case Manner::kHttp1Stays:
      return {"Http1Stays", true, http1, false};
    case Manner::kTls:
      return {"Tls", true, Bytes("\x15\x03\x01\0\x02\x02\x46"), true};
    case Manner::kSsh:
      return {"Ssh", false, "SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3\r\n",
              false};
    case Manner::kNothing:
      return {"Nothing", true, "", false};
    case Manner::kHangsUp:
      return {"HangsUp", false, "", true};
    case Manner::kHangsUpLater:
      return {"HangsUpLater", true, "", true};
    case Manner::kHalfSettings:
      return {"HalfSettings", true, settings.substr(0, 11), false};
    case Manner::kHalfThenHangsUp:
      return {"HalfThenHangsUp", true, settings.substr(0, 11), true};
    case Manner::kOtherFrame:
      return {"OtherFrame", true, Bytes("\0\0\x08\x06\0\0\0\0\0pingpong"),
              false};
    case Manner::kAcknowledges:
      return {"Acknowledges", true, Bytes("\0\0\0\x04\x01\0\0\0\0"), false};
    case Manner::kSettings:
      return {"Settings", true, settings, false};
    case Manner::kPenstock:
      return {"Penstock", true, penstock, false};
    case Manner::kPenstockHangsUp:
      return {"PenstockHangsUp", true, penstock, true};
    case Manner::kPenstockNonsense:
      return {"PenstockNonsense", true, penstock + std::string(1000, 'x'),
              false};
  }
  return {};
}

}  // namespace

std::string NameOf(Manner manner) { return ConductOf(manner).name; }

std::ostream& operator<<(std::ostream& out, Manner manner) {
  return out << NameOf(manner);
}

OddPort::OddPort(Manner manner) : manner_(manner) {
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  EXPECT_EQ(bind(listener_, generic, size), 0);
  EXPECT_EQ(listen(listener_, SOMAXCONN), 0);
  EXPECT_EQ(getsockname(listener_, generic, &size), 0);
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { Serve(); });
}

OddPort::~OddPort() {
  shutdown(listener_, SHUT_RDWR);  // ends accept()
  thread_.join();
  close(listener_);
}

std::string OddPort::address() const {
  return absl::StrCat("127.0.0.1:", port_);
}

bool OddPort::ClientHangsUp() {
  std::future<int> first = first_open_.get_future();
  if (first.wait_for(kPatience) != std::future_status::ready) return false;
  const int fd = first.get();
  timeval patience = {};
  patience.tv_sec = kPatience.count();
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  char bytes[4096];
  ssize_t size;
  while ((size = recv(fd, bytes, sizeof bytes, 0)) > 0) {
  }
  return size == 0 || errno == ECONNRESET;
}

void OddPort::Serve() {
  const Conduct conduct = ConductOf(manner_);
  std::vector<int> open;
  for (;;) {
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) break;
    ++connections_;
    char bytes[4096];
    timeval patience = {};
    patience.tv_sec = 1;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (conduct.reads) (void)!recv(fd, bytes, sizeof bytes, 0);
    (void)!send(fd, conduct.answer.data(), conduct.answer.size(), MSG_NOSIGNAL);
    if (conduct.hangs_up) {
      close(fd);
    } else {
      open.push_back(fd);
      if (open.size() == 1) first_open_.set_value(fd);
    }
  }
  for (int fd : open) close(fd);
}

}  // namespace penstock::e2e
