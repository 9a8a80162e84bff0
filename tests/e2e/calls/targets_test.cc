// Tests all kinds of targets that gRPC resolves: calls must use the expected
// path, and each side must name the other as in stock gRPC.

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "penstock/penstock.h"
#include "tests/e2e/stack_test.h"

namespace penstock::e2e {
namespace {

class TargetsTest : public StackTest {
 protected:
  // Stops the server before its service is destroyed.
  ~TargetsTest() override { StopServing(std::chrono::milliseconds(0)); }

  // Listens on 127.0.0.1, and also on `address` if given.
  void Listen(const std::string& address = "", int* port = nullptr) {
    Serve(&service_, [&](grpc::ServerBuilder* builder) {
      if (address.empty()) return;
      builder->AddListeningPort(address, grpc::InsecureServerCredentials(),
                                port);
    });
  }

  std::shared_ptr<grpc::Channel> ChannelTo(const std::string& target) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel(
        target, CredentialsFor(path(), grpc::InsecureChannelCredentials()),
        arguments);
  }

  // Sends messages of each kind to a server whose own name is `peer`.
  void ExpectWorks(const std::string& target, const std::string& peer) {
    auto channel = ChannelTo(target);
    auto stub = TestService::NewStub(channel);
    Call call;
    auto stream = stub->FullDuplexCall(&call);
    for (size_t bytes : {8, 20000, 200000, 1 << 20}) {
      EXPECT_TRUE(PingPong(stream.get(), bytes)) << target;
    }
    stream->WritesDone();
    const grpc::Status status = stream->Finish();
    EXPECT_TRUE(status.ok()) << target << ": " << status.error_message();
    EXPECT_EQ(call.peer(), peer);
    ExpectReport(*channel, peer);
  }

  // Expects the one report of `channel`, whose calls have sent four messages.
  void ExpectReport(grpc::Channel& channel, const std::string& peer) const {
    // Skips targets that the event engine does not carry or distinguish: UNIX
    // sockets and stock clients.
    if (!kIsEventEngine) {
      ExpectTraffic(channel, 4, 4);
    } else if (path() == Path::kStockClient) {
      return;
    }
    const auto reports = DescribePaths(channel);
    ASSERT_EQ(reports.size(), 1u);
    EXPECT_EQ(reports[0].peer, peer);
  }

  TestServiceImpl service_;
};

// Returns the port of Stack::address().
std::string PortOf(const std::string& address) {
  return address.substr(address.rfind(':') + 1);
}

bool HasIpv6() {
  const int probe = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (probe < 0) return false;
  sockaddr_in6 loopback = {};
  loopback.sin6_family = AF_INET6;
  loopback.sin6_addr = in6addr_loopback;
  const bool bound =
      bind(probe, reinterpret_cast<sockaddr*>(&loopback), sizeof loopback) == 0;
  close(probe);
  return bound;
}

TEST_P(TargetsTest, NameThatTheResolverLooksUp) {
  Listen();
  const std::string target = "localhost:" + PortOf(address());
  ExpectWorks("dns:///" + target, "ipv4:" + address());
  ExpectWorks(target, "ipv4:" + address());
}

TEST_P(TargetsTest, AddressOfIpv4) {
  Listen();
  ExpectWorks("ipv4:" + address(), "ipv4:" + address());
}

TEST_P(TargetsTest, AddressOfIpv6) {
  if (!HasIpv6()) GTEST_SKIP() << "no IPv6 on this machine";
  int port = 0;
  Listen("[::1]:0", &port);
  ExpectWorks(absl::StrCat("ipv6:[::1]:", port),
              absl::StrCat("ipv6:%5B::1%5D:", port));
}

TEST_P(TargetsTest, PathOfAUnixSocket) {
  const char* folder = std::getenv("TEST_TMPDIR");
  const std::string name =
      absl::StrCat(folder == nullptr ? "/tmp" : folder, "/targets", getpid());
  // Skips the test if the name exceeds the capacity of sockaddr_un.
  if (name.size() > 107) GTEST_SKIP() << "too long for a socket: " << name;
  Listen("unix:" + name);
  ExpectWorks("unix:" + name, "unix:" + name);
  ExpectWorks("unix://" + name, "unix:" + name);
}

TEST_P(TargetsTest, NameOfAnAbstractUnixSocket) {
  const std::string target =
      absl::StrCat("unix-abstract:penstock-targets-", getpid());
  Listen(target);
  ExpectWorks(target, target);
}

TEST_P(TargetsTest, ServerOfManyPortsServesEach) {
  const std::string target =
      absl::StrCat("unix-abstract:penstock-ports-", getpid());
  Listen(target);
  auto over_ip = TestService::NewStub(channel());
  auto other = ChannelTo(target);
  auto over_unix = TestService::NewStub(other);
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(MakeEmptyCall(over_ip.get()).ok());
    EXPECT_TRUE(MakeEmptyCall(over_unix.get()).ok());
  }
  ExpectTraffic(10, 10);
  ExpectTraffic(*other, 10, 10);
}

TEST_P(TargetsTest, ChannelWithinTheProcessIsGrpcsOwn) {
  Listen();
  auto within = server()->InProcessChannel(grpc::ChannelArguments());
  auto stub = TestService::NewStub(within);
  Call call;
  auto stream = stub->FullDuplexCall(&call);
  EXPECT_TRUE(PingPong(stream.get()));
  EXPECT_TRUE(PingPong(stream.get(), 1 << 20));
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_EQ(call.peer(), "inproc");
  EXPECT_TRUE(DescribePaths(*within).empty());
}

INSTANTIATE_TEST_SUITE_P(Over, TargetsTest, EachPath(), PathName());

}  // namespace
}  // namespace penstock::e2e
