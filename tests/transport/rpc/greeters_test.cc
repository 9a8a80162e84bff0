// Tests a server's port during a flood of clients without the token. Clients
// with the token must be served.

#include "transport/rpc/greeters.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "tests/transport/base/logged.h"
#include "tests/transport/rpc/awaited.h"
#include "transport/base/log.h"
#include "transport/base/unique_fd.h"
#include "transport/metrics/registry.h"
#include "transport/progress/event_loop.h"
#include "transport/rpc/client.h"
#include "transport/rpc/greeting.h"
#include "transport/rpc/server.h"
#include "transport/wire/frame.h"

namespace penstock {
namespace rpc {
namespace {

constexpr char kToken[] = "a token";
constexpr char kStrangers[] = "127.0.0.2";
constexpr char kCluster[] = "127.0.0.1";
// The number of connections of a crowd: more than a process keeps.
constexpr size_t kCrowd = 4200;

std::string Greeting(const std::string& token = kToken) {
  return EncodeGreeting({wire::kOldestVersion, wire::kVersion, token});
}

// A client's socket that connects from a chosen address of this host.
class Raw {
 public:
  Raw(int port, const char* from)
      : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const sockaddr_in source = Address(from, 0);
    const sockaddr_in target = Address(kCluster, port);
    const int on = 1;
    (void)setsockopt(fd_.get(), SOL_IP, IP_BIND_ADDRESS_NO_PORT, &on,
                     sizeof on);
    EXPECT_EQ(bind(fd_.get(), reinterpret_cast<const sockaddr*>(&source),
                   sizeof source),
              0);
    EXPECT_EQ(connect(fd_.get(), reinterpret_cast<const sockaddr*>(&target),
                      sizeof target),
              0)
        << errno;
  }

  void Send(const std::string& bytes) {
    EXPECT_EQ(send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  // Waits for an answer. Returns an empty answer if the server has closed the
  // connection.
  std::string Receive() {
    pollfd ready = {fd_.get(), POLLIN, 0};
    EXPECT_EQ(poll(&ready, 1, 20 * 1000), 1) << "neither answered nor dropped";
    char answer[512];
    const ssize_t got = recv(fd_.get(), answer, sizeof answer, MSG_DONTWAIT);
    return std::string(answer, static_cast<size_t>(std::max<ssize_t>(got, 0)));
  }
  bool IsWelcome() {
    const std::string answer = Receive();
    absl::string_view rest = answer;
    const auto taken = TakeAnswer(&rest);
    return taken.ok() && taken->has_value() && (*taken)->version != 0;
  }
  // Returns true if the server has closed the connection already.
  bool IsDropped() {
    char byte;
    return recv(fd_.get(), &byte, 1, MSG_DONTWAIT | MSG_PEEK) == 0 ||
           errno == ECONNRESET;
  }

 private:
  static sockaddr_in Address(const char* host, int port) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    EXPECT_EQ(inet_pton(AF_INET, host, &address.sin_addr), 1);
    return address;
  }

  base::UniqueFd fd_;
};

uint64_t Count(metrics::Metric metric, metrics::Refusal reason) {
  return metrics::Registry::Get()->Collect().Get(metric, {reason});
}

progress::EventLoop* Loop() {
  return *progress::EventLoop::GetPolling(progress::PollingMode::kAdaptive);
}

class GreetersTest : public testing::Test {
 protected:
  void SetUp() override { Serve(); }

  void Serve() {
    rlimit descriptors = {};
    getrlimit(RLIMIT_NOFILE, &descriptors);
    descriptors.rlim_cur = descriptors.rlim_max;
    setrlimit(RLIMIT_NOFILE, &descriptors);
    Server::Options options;
    options.address = "127.0.0.1:0";
    options.token = kToken;
    options.settings.fabrics = {Fabric::kTcp};
    server_ = *Server::Start(options, [](std::shared_ptr<IncomingCall> call) {
      call->Respond(Response());
    });
  }

  int port() const { return server_->port(); }

  std::vector<Raw> Crowd(size_t size, const char* from = kStrangers) {
    std::vector<Raw> crowd;
    crowd.reserve(size);
    for (size_t i = 0; i < size; ++i) crowd.emplace_back(port(), from);
    return crowd;
  }
  // Waits until the server has accepted all connections made so far.
  void ExpectAccepted() {
    Raw last(port(), "127.0.0.9");
    last.Send("x");
    EXPECT_EQ(last.Receive(), "");
  }
  absl::Status Call() {
    Client::Options options;
    options.target = absl::StrCat("127.0.0.1:", port());
    options.token = kToken;
    options.settings.fabrics = {Fabric::kTcp};
    auto client = *Client::Connect(options, [](const absl::Status&) {});
    const Awaited<absl::Status> status;
    Request request;
    request.method = "method";
    client->Call(std::move(request),
                 [status](absl::StatusOr<Response> response) {
                   status.Set(response.status());
                 });
    return status.Get().value_or(absl::DeadlineExceededError("no answer"));
  }

  std::unique_ptr<Server> server_;
};

TEST_F(GreetersTest, SilentSocketsDoNotKeepTheClustersOwnOut) {
  for (const char* from : {kStrangers, kCluster}) {
    const std::vector<Raw> crowd = Crowd(kCrowd, from);
    for (int i = 0; i < 10; ++i) {
      const absl::Status status = Call();
      ASSERT_TRUE(status.ok()) << status << ", beside strangers at " << from;
    }
  }
}

// Floods from the cluster's own address, as fast as possible.
TEST_F(GreetersTest, AFloodKeepsTheClustersOwnNotOut) {
  std::atomic<bool> ends{false};
  std::atomic<int> connections{0};
  std::thread flood([&] {
    std::deque<Raw> crowd;
    while (!ends) {
      crowd.emplace_back(port(), kCluster);
      if (crowd.size() > 500) crowd.pop_front();
      ++connections;
    }
  });
  while (connections < 1000) std::this_thread::yield();
  for (int i = 0; i < 30; ++i) {
    const absl::Status status = Call();
    EXPECT_TRUE(status.ok()) << status;
  }
  ends = true;
  flood.join();
  RecordProperty("connections", connections);
}

TEST_F(GreetersTest, TheOldestOfTheHostGoFirst) {
  Raw other(port(), kCluster);
  std::vector<Raw> crowd = Crowd(1000);
  ExpectAccepted();
  size_t dropped = 0;
  for (Raw& each : crowd) dropped += each.IsDropped();
  EXPECT_GE(dropped, 1000u - 256);
  EXPECT_LT(dropped, 1000u);
  for (size_t i = 0; i < crowd.size(); ++i) {
    EXPECT_EQ(crowd[i].IsDropped(), i < dropped) << i;
  }
  // Expects that the client of the other host keeps its connection, although
  // this is the oldest connection.
  other.Send(Greeting());
  EXPECT_TRUE(other.IsWelcome());
}

TEST_F(GreetersTest, ManyHostsShareThePlaces) {
  Raw quiet(port(), kCluster);
  std::vector<std::vector<Raw>> crowds;
  for (int host = 2; host < 9; ++host) {
    crowds.push_back(Crowd(256, absl::StrCat("127.0.0.", host).c_str()));
  }
  ExpectAccepted();
  size_t kept = 0;
  for (auto& crowd : crowds) {
    for (Raw& each : crowd) kept += !each.IsDropped();
  }
  EXPECT_LE(kept, 1024u);
  quiet.Send(Greeting());
  EXPECT_TRUE(quiet.IsWelcome());
}

// A pair of connected sockets for a Greeters object of the test.
class Pair {
 public:
  Pair() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0,
                         ends),
              0);
    servers_.Reset(ends[0]);
    clients_.Reset(ends[1]);
  }
  base::UniqueFd TakeServers() { return std::move(servers_); }
  void Greet() {
    const std::string bytes = Greeting();
    EXPECT_EQ(send(clients_.get(), bytes.data(), bytes.size(), 0),
              static_cast<ssize_t>(bytes.size()));
  }

 private:
  base::UniqueFd servers_;
  base::UniqueFd clients_;
};

// Sends two greetings: one before and one after the server accepts the
// connection. Adds a crowd before the loop polls these two sockets again.
// Returns the number of completed greetings.
int GreetedBesideACrowd() {
  auto greeted = std::make_shared<int>(0);
  auto greeters = std::make_shared<Greeters>(
      Loop(), kToken, [greeted](Greeted) { ++*greeted; });
  sockaddr_storage peer = {};
  peer.ss_family = AF_INET;
  std::vector<Pair> pairs(300);
  pairs[0].Greet();  // before acceptance by the server
  for (size_t i = 0; i < pairs.size(); ++i) {
    greeters->Begin(pairs[i].TakeServers(), peer);
    if (i == 1) pairs[1].Greet();  // after acceptance
  }
  greeters->Stop();
  return *greeted;
}

TEST(Greeters, WhoHasGreetedIsNotDroppedForOthers) {
  std::promise<int> greeted;
  Loop()->Post([&] { greeted.set_value(GreetedBesideACrowd()); });
  EXPECT_EQ(greeted.get_future().get(), 2);
}

TEST_F(GreetersTest, DroppedOnesAreCountedAndLeaveNothing) {
  const uint64_t before =
      Count(metrics::Metric::kRefused, metrics::Refusal::kFlood);
  {
    const std::vector<Raw> crowd = Crowd(600);
    ExpectAccepted();
  }
  EXPECT_GE(Count(metrics::Metric::kRefused, metrics::Refusal::kFlood),
            before + 600 - 256);
  const absl::Time end = absl::Now() + absl::Seconds(20);
  const auto shown = [] {
    return metrics::Registry::Get()->Collect().Get(metrics::Metric::kHalfOpen,
                                                   {});
  };
  while (shown() != 0 && absl::Now() < end)
    absl::SleepFor(absl::Milliseconds(1));
  EXPECT_EQ(shown(), 0u);
}

// Uses up the descriptors. The server must drop strangers even before their 5 s
// have passed.
TEST_F(GreetersTest, WithoutDescriptorsStrangersGo) {
  const std::vector<Raw> crowd = Crowd(20);
  ExpectAccepted();
  rlimit before = {};
  getrlimit(RLIMIT_NOFILE, &before);
  const rlimit few = {200, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  std::vector<base::UniqueFd> taken;
  for (int fd = dup(0); fd >= 0; fd = dup(0)) taken.emplace_back(fd);
  ASSERT_FALSE(taken.empty());
  taken.pop_back();
  {
    const absl::Time begin = absl::Now();
    Raw own(port(), kCluster);
    own.Send(Greeting());
    EXPECT_TRUE(own.IsWelcome());
    EXPECT_LT(absl::Now() - begin, absl::Seconds(4)) << "it had to wait";
  }
  taken.clear();
  setrlimit(RLIMIT_NOFILE, &before);
}

size_t CountOf(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos;
       at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

class GreetersInChildTest : public GreetersTest {
 protected:
  void SetUp() override {}  // the child starts its own server
  void FloodTheLog() {
    Serve();
    for (int i = 0; i < 1500; ++i) {
      Raw stranger(port(), kStrangers);
      stranger.Send(Greeting("another token"));
      (void)stranger.Receive();
    }
    base::LogWarning("the program's own");
  }
};

TEST_F(GreetersInChildTest, WarningsHaveAnAllowanceOfTheirOwn) {
  const std::string log = LoggedBy([this] { FloodTheLog(); });
  EXPECT_TRUE(absl::StrContains(log, "the program's own")) << log;
  EXPECT_GE(CountOf(log, "dropped: "), 10u);
  EXPECT_LE(CountOf(log, "dropped: "), 20u);
}

}  // namespace
}  // namespace rpc
}  // namespace penstock
