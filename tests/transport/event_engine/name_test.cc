// Tests which server of a port gets the name of the port's meeting place.
// CMakeLists.txt builds this file, because Bazel's gRPC is older.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <memory>
#include <string>
#include <thread>

#include "gtest/gtest.h"
#include "tests/transport/event_engine/echo.h"
#include "transport/base/unique_fd.h"
#include "transport/event_engine/meeting/tcp_address.h"
#include "transport/fabric/shm/address.h"

namespace penstock {
namespace event_engine {
namespace {

sockaddr_in Loopback(int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  return address;
}

// Returns the name of the socket of a server at 127.0.0.1.
fabric::shm::SocketAddress NameOf(int port) {
  const sockaddr_in address = Loopback(port);
  const auto tcp = TcpAddress::Of(reinterpret_cast<const sockaddr*>(&address),
                                  sizeof address);
  return {MeetingName(*tcp), ""};
}

// Returns true if a TCP port of 127.0.0.1 is taken by a listener.
bool IsListening(int port) {
  const base::UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in address = Loopback(port);
  return connect(fd.get(), reinterpret_cast<const sockaddr*>(&address),
                 sizeof address) == 0;
}

// Opens a second server on the same port, which cannot get the name.
TEST(NameTest, TakenNameKeepsClientsOnTcp) {
  EchoServer first(kPenstock);
  EchoServer second(kPenstock, grpc::InsecureServerCredentials(), first.port());
  ASSERT_EQ(second.port(), first.port());
  for (int i = 0; i < 8; ++i) {
    const auto channel = NewChannel(first.target(), kPenstock);
    for (int call = 0; call < 5; ++call) {
      EXPECT_TRUE(Echo(channel, std::string(10000, 'x')).ok());
    }
  }
}

// Replaces a server by a new one, which gets the name late.
TEST(NameTest, NameThatBecomesFreeIsUsed) {
  auto first = std::make_unique<EchoServer>(kPenstock);
  EchoServer second(kPenstock, grpc::InsecureServerCredentials(),
                    first->port());
  first.reset();
  EXPECT_TRUE(
      ReachesShm(NewChannel(second.target(), kPenstock), second.target()));
}

// Frees a name only after a new server has its TCP port. The server waits for
// the name, so that its first client gets a path.
TEST(NameTest, ServerWaitsForTheNameOfOneThatEnds) {
  const int port = EchoServer(kStock).port();
  absl::StatusOr<base::UniqueFd> name = fabric::shm::ListenAt(NameOf(port));
  ASSERT_TRUE(name.ok()) << name.status();
  std::thread ending([&] {
    while (!IsListening(port)) std::this_thread::yield();
    name->Reset();
  });
  EchoServer server(kPenstock, grpc::InsecureServerCredentials(), port);
  ending.join();
  EXPECT_FALSE(fabric::shm::ListenAt(NameOf(port)).ok());
}

}  // namespace
}  // namespace event_engine
}  // namespace penstock
