// Tests waits for servers that start later, or that are unreachable.

#include "ps/client/reach.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "penstock/penstock.h"
#include "ps/server/server.h"
#include "ps/service/service.h"
#include "tests/process/child.h"
#include "tests/ps/access/certificates.h"
#include "tests/ps/client/scripted_server.h"
#include "tests/transport/base/set_clock.h"

namespace penstock::ps {
namespace {

using process::Child;
using testing::HasSubstr;
using testing::StartsWith;

constexpr char kWorkerFlag[] = "--worker=";
// A timeout far longer than a wait that must end immediately.
constexpr absl::Duration kLong = absl::Minutes(10);

std::shared_ptr<grpc::Channel> ChannelTo(
    const std::string& address,
    const std::shared_ptr<grpc::ChannelCredentials>& security =
        grpc::InsecureChannelCredentials(),
    const std::string& name = "") {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // Prevents gRPC from reconnecting by itself: sets a backoff of two minutes.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 120'000);
  if (!name.empty()) arguments.SetSslTargetNameOverride(name);
  return grpc::CreateCustomChannel(address, security, arguments);
}

// A port without a server. The kernel accepts connections, but nobody answers.
class Port {
 public:
  Port() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    // Allows a server to bind the port while refused connections of the port
    // are still being closed.
    const int on = 1;
    setsockopt(fd_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(fd_, 1), 0);
    getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size);
    address_ = absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
  }
  ~Port() { Close(); }
  const std::string& address() const { return address_; }
  // Accepts and closes the next connection.
  void RefuseOne() {
    const int connection = accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
    EXPECT_GE(connection, 0);
    close(connection);
  }
  void Close() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }

 private:
  int fd_;
  std::string address_;
};

// A parameter server without a model.
class RealServer {
 public:
  explicit RealServer(const std::string& address = "127.0.0.1:0",
                      const std::shared_ptr<grpc::ServerCredentials>& security =
                          grpc::InsecureServerCredentials())
      : service_(MakeService(&core_)) {
    grpc::ServerBuilder builder;
    Enable(&builder);
    builder.AddListeningPort(address, security, &port_);
    builder.RegisterService(service_.get());
    server_ = builder.BuildAndStart();
    EXPECT_NE(server_, nullptr);
  }
  ~RealServer() {
    core_.Drain();
    server_->Shutdown(std::chrono::system_clock::now());
  }
  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }

 private:
  Server core_{Server::Options()};
  const std::unique_ptr<grpc::Service> service_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

// Waits for a server like a worker. Runs in its own process, in which only
// AwaitServers() uses gRPC, because gRPC connects only while a thread waits in
// gRPC.
int BeWorker(const std::string& address) {
  const absl::Status reached = AwaitServers(
      {ChannelTo(address, Credentials(grpc::InsecureChannelCredentials()))},
      absl::Seconds(60));
  std::printf("worker: %s\n", reached.ToString().c_str());
  return 0;
}

// Tests a server that refuses the first connection. gRPC must make the second
// connection between two calls of AwaitServers().
TEST(ReachTest, AServerThatComesLaterIsReachedSoon) {
  Port port;
  const auto worker = Child::Start(
      {"/proc/self/exe", absl::StrCat(kWorkerFlag, port.address())});
  ASSERT_NE(worker, nullptr);
  port.RefuseOne();
  port.Close();
  RealServer server(port.address());
  EXPECT_EQ(worker->Find("worker: "), "OK");
}

TEST(ReachTest, AServerThatNeverComesIsNamedAmongOthers) {
  RealServer first;
  RealServer last;
  Port port;
  port.Close();
  const absl::Status reached =
      AwaitServers({ChannelTo(first.address()), ChannelTo(port.address()),
                    ChannelTo(last.address())},
                   absl::Seconds(1));
  EXPECT_EQ(reached.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(reached.message()),
              StartsWith("server 1: it was not reached in time ("));
  EXPECT_THAT(std::string(reached.message()), HasSubstr("onnection refused"));
}

TEST(ReachTest, AServerThatIsFrozenIsNamed) {
  Port frozen;
  const absl::Status reached =
      AwaitServers({ChannelTo(frozen.address())}, absl::Milliseconds(500));
  EXPECT_EQ(reached.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(reached.message()),
              StartsWith("server 0: it was not reached in time"));
}

// Tests that an expired call is no answer of a server. gRPC's clock may be
// slightly ahead of ours, so a call may end before our deadline. A proxy may
// return the same error for a dead server.
TEST(ReachTest, TheEndOfACallsTimeIsNoAnswer) {
  ScriptedServer late([](const std::string&, const grpc::ByteBuffer&) {
    return ScriptedServer::Answer{
        grpc::Status(grpc::StatusCode::DEADLINE_EXCEEDED, "Deadline Exceeded"),
        {}};
  });
  const absl::Status reached =
      AwaitServers({late.Channel()}, absl::Milliseconds(500));
  EXPECT_EQ(reached.code(), absl::StatusCode::kDeadlineExceeded) << reached;
}

TEST(ReachTest, ARefusalIsAnAnswer) {
  ScriptedServer refusing([](const std::string&, const grpc::ByteBuffer&) {
    return ScriptedServer::Answer{
        grpc::Status(grpc::StatusCode::PERMISSION_DENIED, "not you"), {}};
  });
  EXPECT_TRUE(AwaitServers({refusing.Channel()}, kLong).ok());
}

// Tests that the wait does not become longer if the system's clock is set back.
// By this clock, the wait would take an hour longer.
TEST(ReachTest, AClockThatIsSetBackMakesNoWaitLonger) {
  Port port;
  absl::Status reached;
  std::thread worker([&] {
    reached = AwaitServers({ChannelTo(port.address())}, absl::Seconds(1));
  });
  port.RefuseOne();  // by now, the worker is waiting
  SetClockBy(-absl::Hours(1));
  worker.join();
  SetClockBy(absl::ZeroDuration());
  EXPECT_EQ(reached.code(), absl::StatusCode::kDeadlineExceeded) << reached;
}

class TlsReachTest : public testing::Test {
 protected:
  // Return credentials that trust certificates signed by `trusted`.
  static std::shared_ptr<grpc::ChannelCredentials> ClientOf(
      const Authority& trusted, const Bearer& own) {
    return grpc::SslCredentials(
        {trusted.certificate(), own.key, own.certificate});
  }
  static std::shared_ptr<grpc::ServerCredentials> ServerOf(
      const Authority& trusted, const Bearer& own) {
    grpc::SslServerCredentialsOptions options(
        GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
    options.pem_root_certs = trusted.certificate();
    options.pem_key_cert_pairs = {{own.key, own.certificate}};
    return grpc::SslServerCredentials(options);
  }
  static void ExpectFailure(const absl::Status& reached, absl::StatusCode code,
                            const std::string& remedy) {
    EXPECT_EQ(reached.code(), code) << reached;
    EXPECT_THAT(std::string(reached.message()), StartsWith("server 0: "));
    EXPECT_THAT(std::string(reached.message()), HasSubstr(remedy));
  }

  const Authority ours_;
  const Authority others_{"another authority"};
  const Bearer worker_ = ours_.Issue({"worker", {}, {"worker.test"}});
  const Bearer server_ = ours_.Issue({"server", {}, {"server.test"}});
};

TEST_F(TlsReachTest, OneAuthorityOnBothSidesReaches) {
  RealServer server("127.0.0.1:0", ServerOf(ours_, server_));
  const auto channel =
      ChannelTo(server.address(), ClientOf(ours_, worker_), "server.test");
  const absl::Status reached = AwaitServers({channel}, kLong);
  EXPECT_TRUE(reached.ok()) << reached;
}

TEST_F(TlsReachTest, ACertificateOfAnotherAuthorityFailsAtOnce) {
  RealServer server("127.0.0.1:0", ServerOf(ours_, server_));
  const auto channel =
      ChannelTo(server.address(), ClientOf(others_, worker_), "server.test");
  ExpectFailure(AwaitServers({channel}, kLong),
                absl::StatusCode::kUnauthenticated, "--ca names who signed it");
}

// Tests a certificate with a wrong signature, for which OpenSSL has a different
// error text.
TEST_F(TlsReachTest, AnotherAuthorityOfTheSameNameFailsAtOnce) {
  const Authority impostor;
  RealServer server("127.0.0.1:0", ServerOf(ours_, server_));
  const auto channel =
      ChannelTo(server.address(), ClientOf(impostor, worker_), "server.test");
  ExpectFailure(AwaitServers({channel}, kLong),
                absl::StatusCode::kUnauthenticated, "of one authority on both");
}

TEST_F(TlsReachTest, ACertificateForAnotherNameFailsAtOnce) {
  RealServer server("127.0.0.1:0", ServerOf(ours_, server_));
  const auto channel =
      ChannelTo(server.address(), ClientOf(ours_, worker_), "another.test");
  ExpectFailure(AwaitServers({channel}, kLong),
                absl::StatusCode::kUnauthenticated, "use the one in it");
}

TEST_F(TlsReachTest, AServerWithoutTlsFailsAtOnce) {
  RealServer server;
  const auto channel =
      ChannelTo(server.address(), ClientOf(ours_, worker_), "server.test");
  ExpectFailure(AwaitServers({channel}, kLong),
                absl::StatusCode::kUnauthenticated, "leave them out here");
}

// Tests a server that does not trust the client's authority. The client cannot
// distinguish this server from one that is starting, and gives up after
// kClosedLimit.
TEST_F(TlsReachTest, AServerThatTrustsNotOurAuthorityIsGivenUp) {
  RealServer server("127.0.0.1:0", ServerOf(others_, server_));
  const auto channel =
      ChannelTo(server.address(), ClientOf(ours_, worker_), "server.test");
  ExpectFailure(AwaitServers({channel}, kLong), absl::StatusCode::kUnavailable,
                "its log says why it closes");
}

TEST_F(TlsReachTest, AServerWithTlsIsGivenUpWithoutIt) {
  RealServer server("127.0.0.1:0", ServerOf(ours_, server_));
  ExpectFailure(AwaitServers({ChannelTo(server.address())}, kLong),
                absl::StatusCode::kUnavailable, "it wants --ca");
}

}  // namespace
}  // namespace penstock::ps

int main(int argc, char** argv) {
  const std::string first = argc > 1 ? argv[1] : "";
  const size_t flag = sizeof(penstock::ps::kWorkerFlag) - 1;
  if (first.compare(0, flag, penstock::ps::kWorkerFlag) == 0) {
    return penstock::ps::BeWorker(first.substr(flag));
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
