// Tests several sockets for one session. All tests run with four.

#include <arpa/inet.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/blocking_counter.h"
#include "grpc/support/sync.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"
#include "gtest/gtest.h"
#include "penstock/penstock.h"
#include "tests/e2e/call.h"
#include "tests/e2e/certificates.h"
#include "tests/e2e/raw.h"
#include "tests/e2e/stack.h"

namespace penstock::e2e {
namespace {

const int g_set = setenv("PENSTOCK_TCP_SOCKETS", "4", /*overwrite=*/1);
constexpr int kMostFds = 1024;

// Returns the descriptors of both sides' sockets, except those of the session's
// first connection. Only the other sockets have the options that detect dead
// peers.
std::vector<int> Stripes() {
  std::vector<int> found;
  for (int fd = 0; fd < kMostFds; ++fd) {
    sockaddr_in peer = {};
    socklen_t length = sizeof peer;
    int idle_seconds = 0;
    socklen_t option_length = sizeof idle_seconds;
    if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &length) == 0 &&
        getsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_seconds,
                   &option_length) == 0 &&
        idle_seconds == 4) {
      found.push_back(fd);
    }
  }
  return found;
}

uint64_t BytesReceived(int fd) {
  tcp_info info = {};
  socklen_t length = sizeof info;
  EXPECT_EQ(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length), 0);
  return info.tcpi_bytes_received;
}

class StripesTest : public testing::Test {
 protected:
  ~StripesTest() override {
    channel_ = nullptr;
    stack_.StopServing(std::chrono::milliseconds(0));
  }

  void Serve() {
    stack_.Serve(nullptr, [this](grpc::ServerBuilder* builder) {
      builder->RegisterCallbackGenericService(&service_);
      builder->SetMaxReceiveMessageSize(-1);
    });
    Connect();
  }
  // Makes a channel with a connection of its own.
  void Connect(grpc::ChannelArguments arguments = {}) {
    arguments.SetMaxReceiveMessageSize(-1);
    channel_ = stack_.NewChannel(arguments);
    Echo(1);
  }
  int port() const {
    const std::string address = stack_.address();
    return std::atoi(address.substr(address.rfind(':') + 1).c_str());
  }
  void Echo(size_t bytes, unsigned seed = 1) {
    Call call;
    RawStream stream(channel_, &call);
    const std::string sent = Pattern(bytes, seed);
    ASSERT_TRUE(stream.Write(sent));
    const absl::optional<std::string> received = stream.Read();
    ASSERT_TRUE(received.has_value());
    EXPECT_TRUE(*received == sent);
    stream.WritesDone();
    EXPECT_FALSE(stream.Read().has_value());
    const grpc::Status status = stream.Finish();
    EXPECT_TRUE(status.ok()) << status.error_message();
  }
  std::string PathNow() {
    const std::vector<PathReport> reports = DescribePaths(*channel_);
    if (reports.size() != 1) return "none";
    return absl::StrCat(reports[0].path, " ", reports[0].detail,
                        reports[0].reason);
  }
  // Makes calls in the meantime, because calls detect a loss.
  bool EchoUntilPathIs(const std::string& path) {
    const auto end = In(kPatience);
    while (!absl::StrContains(PathNow(), path)) {
      if (std::chrono::system_clock::now() > end) return false;
      Echo(1);
    }
    return true;
  }
  // Connects to the server. Returns true if the server closes the connection
  // after `bytes`.
  bool IsRefused(const std::string& bytes) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port()));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(
        connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    timeval patience = {};
    patience.tv_sec = 10;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    EXPECT_EQ(send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
    char answer[4096];
    ssize_t size;
    while ((size = recv(fd, answer, sizeof answer, 0)) > 0) {
    }
    const bool refused = size == 0 || errno == ECONNRESET;
    close(fd);
    return refused;
  }

  RawEchoService service_;
  Stack stack_{Path::kTcp};
  std::shared_ptr<grpc::Channel> channel_;
};

TEST_F(StripesTest, LargeMessagesUseAllSockets) {
  Serve();
  ASSERT_TRUE(EchoUntilPathIs("tcp 4 sockets")) << PathNow();
  for (size_t bytes : {100u, 20000u, 300000u}) Echo(bytes);
  for (int i = 0; i < 4; ++i) Echo(8 * 1024 * 1024, i);
  const std::vector<int> stripes = Stripes();
  ASSERT_EQ(stripes.size(), 8u);
  for (int fd : stripes) EXPECT_GT(BytesReceived(fd), 1024u * 1024);
}

TEST_F(StripesTest, LostSocketLosesNoCall) {
  Serve();
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 6; ++round) {
    // Connects again in each round, because each loss doubles a connection's
    // wait before the next attempt.
    if (round > 0) Connect();
    ASSERT_TRUE(EchoUntilPathIs("4 sockets")) << PathNow();
    std::atomic<bool> done{false};
    // Each caller has made some calls, and makes more.
    absl::BlockingCounter are_busy(3);
    std::vector<std::thread> callers;
    for (unsigned caller = 0; caller < 3; ++caller) {
      callers.emplace_back([this, &done, &are_busy, caller] {
        for (unsigned i = 0; !done || i < 3; ++i) {
          if (i == 3) are_busy.DecrementCount();
          Echo((size_t{1} << (i * 7 % 23)) + i, caller);
        }
      });
    }
    are_busy.Wait();
    // Ends a socket at the client or at the server.
    const std::vector<int> stripes = Stripes();
    EXPECT_GE(stripes.size(), 8u);
    shutdown(stripes[random() % stripes.size()], SHUT_RDWR);
    EXPECT_TRUE(EchoUntilPathIs("lost")) << PathNow();
    done = true;
    for (std::thread& caller : callers) caller.join();
    if (round == 0) {
      EXPECT_TRUE(EchoUntilPathIs("4 sockets")) << PathNow();
    }
  }
}

TEST_F(StripesTest, StrangersGetNoSession) {
  Serve();
  ASSERT_TRUE(EchoUntilPathIs("4 sockets")) << PathNow();
  const std::string magic = "PSTKstr?";
  const std::string token(16, 't');
  EXPECT_TRUE(IsRefused(magic + std::string("\4\0", 2) + token));
  EXPECT_TRUE(IsRefused(magic + std::string("\4\4", 2) + token));
  EXPECT_TRUE(IsRefused(magic + std::string("\4\0", 2) + token + "more"));
  EXPECT_TRUE(IsRefused(magic + std::string("\377\0", 2) + token));
  Echo(1024 * 1024);
  EXPECT_TRUE(absl::StrContains(PathNow(), "4 sockets")) << PathNow();
}

// A mutator without effect. Declared here, because not every installation has
// gRPC's header of these types.
struct MutatorFunctions {
  bool (*mutate_fd)(int, grpc_socket_mutator*);
  int (*compare)(grpc_socket_mutator*, grpc_socket_mutator*);
  void (*destroy)(grpc_socket_mutator*);
  bool (*mutate_fd_2)(const void*, grpc_socket_mutator*);
};
struct Mutator {
  const MutatorFunctions* functions;
  gpr_refcount references;
};

TEST_F(StripesTest, ConnectionsWithAMutatorUseOneSocket) {
  static const MutatorFunctions functions = {
      [](int, grpc_socket_mutator*) { return true; },
      [](grpc_socket_mutator* a, grpc_socket_mutator* b) {
        return static_cast<int>(a > b) - static_cast<int>(a < b);
      },
      [](grpc_socket_mutator*) {}, nullptr};
  static Mutator mutator = {&functions, {1000}};
  Serve();
  grpc::ChannelArguments arguments;
  arguments.SetSocketMutator(reinterpret_cast<grpc_socket_mutator*>(&mutator));
  Connect(arguments);
  EXPECT_TRUE(absl::StrContains(PathNow(), "without a socket mutator"))
      << PathNow();
}

TEST_F(StripesTest, TlsUsesOneSocket) {
  ASSERT_TRUE(TestCertificates().has_value());
  grpc::SslServerCredentialsOptions server;
  server.pem_key_cert_pairs.push_back(
      {TestCertificates()->server.key, TestCertificates()->server.certificate});
  grpc::SslCredentialsOptions client;
  client.pem_root_certs = TestCertificates()->authority.certificate;
  stack_.Secure(grpc::SslServerCredentials(server),
                grpc::SslCredentials(client));
  Serve();
  Echo(1024 * 1024);
  EXPECT_TRUE(absl::StrContains(PathNow(), "TLS uses one socket")) << PathNow();
  EXPECT_TRUE(Stripes().empty());
}

}  // namespace
}  // namespace penstock::e2e
