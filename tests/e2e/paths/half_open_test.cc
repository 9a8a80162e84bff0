// Tests a peer that negotiates and then sends nothing, or nonsense.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>

#include "gtest/gtest.h"
#include "tests/e2e/stack_test.h"

namespace penstock::e2e {
namespace {

// A client's offer by docs/protocol.md: the preface, and SETTINGS with the
// private setting.
const char kOffer[] =
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    "\0\0\x06\x04\0\0\0\0\0\xfe\x10\x50\x45\x01\x01";
constexpr size_t kAnswerBytes = 15;

class HalfOpenTest : public ServiceTest {
 protected:
  ~HalfOpenTest() override { close(socket_); }

  void Negotiate() {
    socket_ = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    const std::string target = this->address();
    address.sin_port = htons(static_cast<uint16_t>(
        std::atoi(target.substr(target.rfind(':') + 1).c_str())));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(
        connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address),
        0);
    timeval patience = {};
    patience.tv_sec = kPatience.count();
    setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    Send(std::string(kOffer, sizeof kOffer - 1));
    char answer[kAnswerBytes];
    ASSERT_EQ(recv(socket_, answer, sizeof answer, MSG_WAITALL),
              static_cast<ssize_t>(sizeof answer));
  }
  void Send(const std::string& bytes) {
    ASSERT_EQ(send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  // Returns true if the server closes the connection before the timeout. The
  // server may send bytes first.
  bool ServerHangsUp() {
    char bytes[4096];
    ssize_t size;
    while ((size = recv(socket_, bytes, sizeof bytes, 0)) > 0) {
    }
    return size == 0 || errno == ECONNRESET;
  }

  int socket_ = -1;
};

TEST_P(HalfOpenTest, WhoSaysNoHelloIsCutOff) {
  Negotiate();
  EXPECT_TRUE(ServerHangsUp());
  EXPECT_TRUE(MakeEmptyCall(stub_.get()).ok());
}

TEST_P(HalfOpenTest, WhoTalksNonsenseIsCutOffAndNobodyElse) {
  Negotiate();
  ASSERT_TRUE(MakeEmptyCall(stub_.get()).ok());
  Send(std::string(1000, 'x'));
  EXPECT_TRUE(ServerHangsUp());
  EXPECT_TRUE(MakeEmptyCall(stub_.get()).ok());
  ExpectTraffic(2, 2);  // on a single connection
}

INSTANTIATE_TEST_SUITE_P(Over, HalfOpenTest, EachPenstockPath(), PathName());

}  // namespace
}  // namespace penstock::e2e
