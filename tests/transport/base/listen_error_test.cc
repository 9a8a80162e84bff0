// Tests the reasons for which a server cannot listen.

#include "transport/base/listen_error.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "transport/base/unique_fd.h"

namespace penstock {
namespace base {
namespace {

using testing::HasSubstr;

// A socket that listens at a free port of the loopback.
class Taken {
 public:
  Taken() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const native = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(fd_.get(), native, size), 0);
    EXPECT_EQ(listen(fd_.get(), 1), 0);
    EXPECT_EQ(getsockname(fd_.get(), native, &size), 0);
    port_ = ntohs(address.sin_port);
  }
  int port() const { return port_; }

 private:
  UniqueFd fd_;
  int port_ = 0;
};

TEST(WhyCannotListenTest, NothingIsSaidWhereItWorks) {
  EXPECT_EQ(WhyCannotListen("127.0.0.1", 0), "");
  EXPECT_EQ(WhyCannotListen("localhost:0"), "");
  // Expects that the function tries only TCP addresses.
  EXPECT_EQ(WhyCannotListen("unix:/tmp/x"), "");
  EXPECT_EQ(WhyCannotListen("127.0.0.1:70000"), "");
  EXPECT_EQ(WhyCannotListen(""), "");
}

TEST(WhyCannotListenTest, APortInUse) {
  const Taken taken;
  EXPECT_THAT(WhyCannotListen("127.0.0.1", taken.port()), HasSubstr("in use"));
  EXPECT_THAT(WhyCannotListen(absl::StrCat("127.0.0.1:", taken.port())),
              HasSubstr("in use"));
}

TEST(WhyCannotListenTest, AnAddressOfAnotherMachine) {
  EXPECT_THAT(WhyCannotListen("192.0.2.1", 0),
              HasSubstr("none of this machine's"));
  const std::string v6 = WhyCannotListen("[2001:db8::1]:0");
  EXPECT_TRUE(v6.find("none of this machine's") != std::string::npos ||
              v6.find("IPv6") != std::string::npos)
      << v6;
}

TEST(WhyCannotListenTest, AnUnknownName) {
  EXPECT_THAT(WhyCannotListen("no-such-name.invalid", 0),
              HasSubstr("\"no-such-name.invalid\" is unknown"));
  EXPECT_THAT(WhyCannotListen("\x1b[2J.invalid", 0), HasSubstr("\\x1b"));
}

// Returns the error text that an ordinary user, "nobody", gets.
std::string SaidToNobody(int port) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    std::string said = "cannot become another user";
    if (setgid(65534) == 0 && setuid(65534) == 0) {
      said = WhyCannotListen("127.0.0.1", port);
    }
    _exit(write(ends[1], said.data(), said.size()) < 0);
  }
  close(ends[1]);
  std::string said(500, '\0');
  const ssize_t size = read(ends[0], &said[0], said.size());
  said.resize(size > 0 ? static_cast<size_t>(size) : 0);
  close(ends[0]);
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
  return said;
}

TEST(WhyCannotListenTest, APortOfRoots) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const std::string said = SaidToNobody(1);
  if (said.empty()) {
    GTEST_SKIP() << "this namespace lets everybody have ports below 1024";
  }
  EXPECT_THAT(said, HasSubstr("CAP_NET_BIND_SERVICE"));
}

}  // namespace
}  // namespace base
}  // namespace penstock
