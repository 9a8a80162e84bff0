// Tests connections that stay on TCP, whose sockets Penstock's threads poll.
// Uses only gRPC's public API, and raw sockets for peers other than gRPC.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "penstock/penstock.h"
#include "tests/transport/event_engine/echo.h"
#include "transport/base/unique_fd.h"

namespace penstock {
namespace event_engine {
namespace {

Options OverTcp() {
  Options options;
  options.policy = Policy::kPrefer;
  options.fabrics = {Fabric::kTcp};
  return options;
}
Options Prefer() {
  Options options;
  options.policy = Policy::kPrefer;
  return options;
}
Options Stock() {
  Options options;
  options.policy = Policy::kOff;
  return options;
}

// Lets the process open `count` descriptors. Returns false if it may not.
bool MayOpen(rlim_t count) {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_max < count) {
    return false;
  }
  limit.rlim_cur = limit.rlim_max;
  return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

bool IsOverShm(const PathReport& report) { return report.path == "shm"; }

// Returns true if the connection stays on TCP because the two sides did not
// meet in time.
bool WasLate(const PathReport& report) {
  return !IsOverShm(report) && absl::StrContains(report.reason, "in time");
}

// Returns the number of the server's connections for which `is_counted` is
// true.
int Count(grpc::Server& server, bool (*is_counted)(const PathReport& report)) {
  const std::vector<PathReport> reports = DescribePaths(server);
  return static_cast<int>(
      std::count_if(reports.begin(), reports.end(), is_counted));
}

// Returns a text of log-uniform size, up to 8 MiB.
std::string RandomText(std::mt19937* random) {
  const uint32_t bits = (*random)() % 24;
  std::string text((*random)() & ((1u << bits) - 1), '\0');
  for (size_t i = 0; i < text.size(); i += 997) {
    text[i] = static_cast<char>((*random)());
  }
  return text;
}

void ExpectEchoes(const std::shared_ptr<grpc::Channel>& channel, uint32_t seed,
                  int calls) {
  std::mt19937 random(seed);
  for (int i = 0; i < calls; ++i) {
    const grpc::Status status = Echo(channel, RandomText(&random));
    ASSERT_TRUE(status.ok())
        << "seed " << seed << ", call " << i << ": " << status.error_message();
  }
}

sockaddr_in Loopback(int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

base::UniqueFd Stranger(int port) {
  base::UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in to = Loopback(port);
  EXPECT_EQ(
      connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
  return fd;
}

TEST(SocketTest, RandomSizesWithOursOnEitherSide) {
  const std::pair<Options, Options> sides[] = {
      {OverTcp(), OverTcp()}, {OverTcp(), Stock()}, {Stock(), OverTcp()}};
  uint32_t seed = 1;
  for (const auto& side : sides) {
    EchoServer server(side.first);
    auto channel = NewChannel(server.target(), side.second);
    ExpectEchoes(channel, seed++, 40);
  }
}

// Tests both directions at once, with messages that fill the sockets' buffers.
TEST(SocketTest, ManyLargeMessagesAtOnce) {
  EchoServer server(OverTcp());
  auto channel = NewChannel(server.target(), OverTcp());
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&channel, i] {
      const std::string text(4 << 20, static_cast<char>('a' + i));
      for (int k = 0; k < 3; ++k) EXPECT_TRUE(Echo(channel, text).ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Compares the errors for a port where nobody listens with stock gRPC's errors.
TEST(SocketTest, RefusedConnectionHasTheErrorOfStockGrpc) {
  int port = 0;
  { port = EchoServer(OverTcp()).port(); }
  const std::string target = absl::StrCat("ipv4:127.0.0.1:", port);
  const grpc::Status ours = Echo(NewChannel(target, OverTcp()), "hello");
  const grpc::Status stock = Echo(NewChannel(target, Stock()), "hello");
  EXPECT_EQ(ours.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(ours.error_message(), stock.error_message());
}

// Fills the backlog of a listener. The next client then waits forever.
TEST(SocketTest, AttemptThatHangsEndsWithItsChannel) {
  base::UniqueFd listening(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(bind(listening.get(), generic, size), 0);
  ASSERT_EQ(listen(listening.get(), 0), 0);
  ASSERT_EQ(getsockname(listening.get(), generic, &size), 0);
  const int port = ntohs(address.sin_port);
  const base::UniqueFd first = Stranger(port);
  auto channel = grpc::CreateChannel(
      absl::StrCat("ipv4:127.0.0.1:", port),
      Credentials(grpc::InsecureChannelCredentials(), OverTcp()));
  (void)channel->GetState(/*try_to_connect=*/true);
  EXPECT_FALSE(channel->WaitForConnected(std::chrono::system_clock::now() +
                                         std::chrono::milliseconds(100)));
  channel.reset();
  EchoServer server(OverTcp());
  ExpectEchoes(NewChannel(server.target(), OverTcp()), 7, 3);
}

TEST(SocketTest, WildcardServesBothFamilies) {
  class Nothing : public grpc::CallbackGenericService {};
  for (const char* at : {"0.0.0.0:0", "[::]:0"}) {
    Nothing service;
    grpc::ServerBuilder builder;
    Enable(&builder, OverTcp());
    int port = 0;
    builder.AddListeningPort(at, grpc::InsecureServerCredentials(), &port);
    builder.RegisterCallbackGenericService(&service);
    auto server = builder.BuildAndStart();
    ASSERT_NE(server, nullptr) << at;
    for (const char* ip : {"ipv4:127.0.0.1:", "ipv6:[::1]:"}) {
      const bool is_v6 = ip[3] == '6';
      if (is_v6 && access("/proc/net/if_inet6", R_OK) != 0) continue;
      EXPECT_EQ(Echo(NewChannel(absl::StrCat(ip, port), OverTcp()), "hello")
                    .error_code(),
                grpc::StatusCode::UNIMPLEMENTED)
          << at << " by " << ip;
    }
    server->Shutdown();
  }
}

TEST(SocketTest, PortInUseIsAnError) {
  class Nothing : public grpc::CallbackGenericService {
  } service;
  base::UniqueFd taken(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(bind(taken.get(), generic, size), 0);
  ASSERT_EQ(listen(taken.get(), 1), 0);
  ASSERT_EQ(getsockname(taken.get(), generic, &size), 0);
  grpc::ServerBuilder builder;
  Enable(&builder, OverTcp());
  builder.RegisterCallbackGenericService(&service);
  builder.AddListeningPort(absl::StrCat("127.0.0.1:", ntohs(address.sin_port)),
                           grpc::InsecureServerCredentials());
  EXPECT_EQ(builder.BuildAndStart(), nullptr);
}

// Tests a thousand strangers that connect, some of which reset the connection
// in the middle of their first bytes. Paths are allowed, so that the server
// also waits for each stranger's path.
TEST(SocketTest, AThousandStrangersDisturbNobody) {
  constexpr int kStrangers = 1000;
  if (!MayOpen(4 * kStrangers)) GTEST_SKIP() << "ulimit -Hn is too low";
  EchoServer server(Prefer());
  auto channel = NewChannel(server.target(), Prefer());
  std::vector<base::UniqueFd> strangers;
  for (int i = 0; i < kStrangers; ++i) {
    strangers.push_back(Stranger(server.port()));
    constexpr char kPreface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    (void)send(strangers.back().get(), kPreface, i % sizeof kPreface,
               MSG_NOSIGNAL);
    if (i % 3 != 0) continue;
    const linger reset = {1, 0};
    (void)setsockopt(strangers.back().get(), SOL_SOCKET, SO_LINGER, &reset,
                     sizeof reset);
    strangers.back().Reset();
  }
  ExpectEchoes(channel, 5, 10);
  ExpectEchoes(NewChannel(server.target(), Stock()), 6, 5);
  strangers.clear();
  ExpectEchoes(channel, 7, 10);
}

// Opens a thousand connections of one process to its own server, with a call on
// each. All get a path, except for a few whose sides did not meet in time: a
// machine may stop the process for longer than a server waits.
TEST(SocketTest, AThousandConnections) {
  constexpr int kConnections = 1000;
  constexpr int kMostLate = 10;
  constexpr int kDescriptorsEach = 12;
  if (!MayOpen(kConnections * kDescriptorsEach)) {
    GTEST_SKIP() << "ulimit -Hn is too low";
  }
  EchoServer server(Prefer());
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  for (int i = 0; i < kConnections; ++i) {
    channels.push_back(NewChannel(server.target(), Prefer()));
    ASSERT_TRUE(Echo(channels.back(), std::string(1000, 'x')).ok()) << i;
  }
  const auto end = absl::Now() + absl::Minutes(1);
  while (Count(*server.server(), IsOverShm) + Count(*server.server(), WasLate) <
             kConnections &&
         absl::Now() < end) {
    absl::SleepFor(absl::Milliseconds(10));
  }
  for (const PathReport& report : DescribePaths(*server.server())) {
    EXPECT_TRUE(IsOverShm(report) || WasLate(report))
        << report.peer << ": " << report.path << ": " << report.reason;
  }
  EXPECT_GE(Count(*server.server(), IsOverShm), kConnections - kMostLate);
  for (const auto& channel : channels) {
    ASSERT_TRUE(Echo(channel, "hello").ok());
  }
}

}  // namespace
}  // namespace event_engine
}  // namespace penstock
