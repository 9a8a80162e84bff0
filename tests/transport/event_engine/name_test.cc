// Tests which server of a port gets the name of the port's meeting place.
// CMakeLists.txt builds this file, because Bazel's gRPC is older.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"
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

// Waits until a former server's name is free. Returns false after ten seconds.
// Another thread closes the socket, perhaps after the server's destructor.
bool AwaitFreeName(int port) {
  const auto end = absl::Now() + absl::Seconds(10);
  while (!fabric::shm::ListenAt(NameOf(port)).ok()) {
    if (absl::Now() > end) return false;
    absl::SleepFor(absl::Milliseconds(1));
  }
  return true;
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
  ASSERT_TRUE(AwaitFreeName(second.port()));
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

// Connects to the socket very often. One half of the callers stays silent, and
// the other half sends nonsense. More callers wait than the server admits.
// Calls go on, and clients get paths again once the callers are gone.
TEST(NameTest, CallersThatNeverFinishDisturbNobody) {
  constexpr int kCallers = 2000;
  constexpr size_t kOpenCallers = 500;
  EchoServer server(kPenstock);
  const auto channel = NewChannel(server.target(), kPenstock);
  ASSERT_TRUE(ReachesShm(channel, server.target()));
  std::deque<base::UniqueFd> callers;
  for (int i = 0; i < kCallers; ++i) {
    absl::StatusOr<base::UniqueFd> caller =
        fabric::shm::ConnectTo(NameOf(server.port()));
    if (!caller.ok()) continue;  // the socket's queue is full
    const std::string nonsense(i % 300, static_cast<char>(i));
    if (i % 2 == 1) {
      (void)send(caller->get(), nonsense.data(), nonsense.size(), MSG_NOSIGNAL);
    }
    callers.push_back(*std::move(caller));
    if (callers.size() > kOpenCallers) callers.pop_front();
    if (i % 100 != 0) continue;
    EXPECT_TRUE(Echo(channel, std::string(1000, 'x')).ok());
    EXPECT_TRUE(Echo(NewChannel(server.target(), kPenstock), "hello").ok());
  }
  EXPECT_GT(callers.size(), 0u);
  callers.clear();
  EXPECT_TRUE(
      ReachesShm(NewChannel(server.target(), kPenstock), server.target()));
}

}  // namespace
}  // namespace event_engine
}  // namespace penstock
