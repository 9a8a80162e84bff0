// Tests the adapter for current gRPC through gRPC's public API only.
// CMakeLists.txt builds this file, because Bazel's gRPC is older.

#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "penstock/device_slices.h"
#include "penstock/metrics.h"
#include "penstock/record.h"
#include "tests/e2e/certificates.h"
#include "tests/transport/event_engine/echo.h"

namespace penstock {
namespace event_engine {
namespace {

// Returns a text of log-uniform size, up to 4 MiB.
std::string RandomText(std::mt19937* random) {
  const uint32_t bits = (*random)() % 23;
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

// Ends the sockets by which each side of a path notices the other's death.
void LoseAllPaths() {
  for (int fd = 3; fd < 1024; ++fd) {
    int type = 0;
    socklen_t size = sizeof type;
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) != 0) continue;
    sockaddr_un peer;
    socklen_t peer_size = sizeof peer;
    if (type == SOCK_SEQPACKET &&
        getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &peer_size) == 0) {
      shutdown(fd, SHUT_RDWR);
    }
  }
}

// Must run first: tests that the engine may be installed after gRPC was used.
TEST(EngineTest, EngineMayComeAfterTheFirstChannel) {
  EchoServer stock(kStock);
  EXPECT_TRUE(Echo(NewChannel(stock.target(), kStock), "hello").ok());
  EchoServer server(kPenstock);
  auto channel = NewChannel(server.target(), kPenstock);
  EXPECT_TRUE(ReachesShm(channel, server.target()));
  ExpectEchoes(channel, 1, 20);
}

TEST(EngineTest, RandomSizesOverShm) {
  EchoServer server(kPenstock);
  auto channel = NewChannel(server.target(), kPenstock);
  ASSERT_TRUE(ReachesShm(channel, server.target()));
  ExpectEchoes(channel, 2, 200);
  EXPECT_EQ(PathTo(channel, server.target()), "shm");
  ASSERT_EQ(DescribePaths(*server.server()).size(), 1u);
  EXPECT_EQ(DescribePaths(*server.server())[0].path, "shm");
}

TEST(EngineTest, StreamOverShm) {
  EchoServer server(kPenstock);
  auto channel = NewChannel(server.target(), kPenstock);
  ASSERT_TRUE(ReachesShm(channel, server.target()));
  EchoCall call(channel);
  std::mt19937 random(3);
  for (int i = 0; i < 100; ++i) {
    const std::string text = RandomText(&random);
    std::string echo;
    ASSERT_TRUE(call.Send(text));
    ASSERT_TRUE(call.Receive(&echo));
    ASSERT_EQ(echo, text);
  }
  EXPECT_TRUE(call.Finish().ok());
}

// Sends a slice whose destroy function takes the locks of all connections.
// Retries are off, so that gRPC keeps no reference to a sent message.
TEST(EngineTest, DestroyFunctionOfASliceMayUseTheLibrary) {
  struct Sent {
    std::shared_ptr<grpc::Channel> channel;
    std::string bytes;
    absl::Notification destroyed;
  };
  EchoServer server(kPenstock);
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  auto channel = grpc::CreateCustomChannel(
      server.target(),
      Credentials(grpc::InsecureChannelCredentials(), kPenstock), arguments);
  ASSERT_TRUE(ReachesShm(channel, server.target()));
  for (size_t size : {size_t{1}, size_t{4000}, size_t{1000000}}) {
    Sent sent{channel, std::string(size, 'x'), {}};
    const auto destroy = [](void* argument) {
      auto* const sent = static_cast<Sent*>(argument);
      (void)DescribePaths(*sent->channel);
      sent->destroyed.Notify();
    };
    EchoCall call(channel);
    ASSERT_TRUE(call.Send(
        grpc::Slice(&sent.bytes[0], sent.bytes.size(), destroy, &sent)));
    std::string echo;
    ASSERT_TRUE(call.Receive(&echo));
    EXPECT_EQ(echo, sent.bytes);
    EXPECT_TRUE(call.Finish().ok());
    sent.destroyed.WaitForNotification();
  }
}

TEST(EngineTest, StockClient) {
  EchoServer server(kPenstock);
  auto channel = NewChannel(server.target(), kStock);
  ExpectEchoes(channel, 4, 30);
  ASSERT_EQ(DescribePaths(*server.server()).size(), 1u);
  EXPECT_EQ(DescribePaths(*server.server())[0].path, "http2");
}

TEST(EngineTest, StockServer) {
  EchoServer server(kStock);
  auto channel = NewChannel(server.target(), kPenstock);
  ExpectEchoes(channel, 5, 30);
  EXPECT_EQ(PathTo(channel, server.target()), "http2");
}

// Tests that programs that use other features link, and learn that these
// features are absent.
TEST(EngineTest, AbsentFeaturesSaySo) {
  EXPECT_TRUE(absl::IsUnimplemented(RecordCalls("calls")));
  EXPECT_TRUE(absl::IsUnimplemented(ServeMetrics("9464").status()));
  EXPECT_EQ(MetricsText(), "");
  EXPECT_EQ(AddMetrics(nullptr), nullptr);
  AcceptDeviceSlices("/test/");
  FinishRecording();
}

TEST(EngineTest, RequireNeedsAPath) {
  EchoServer stock(kStock);
  EXPECT_FALSE(
      Echo(NewChannel(stock.target(), With(Policy::kRequire)), "hello").ok());
  EchoServer server(With(Policy::kRequire));
  auto channel = NewChannel(server.target(), With(Policy::kRequire));
  EXPECT_TRUE(Echo(channel, "hello").ok());
  EXPECT_EQ(PathTo(channel, server.target()), "shm");
}

TEST(EngineTest, SettingsWithoutShmMeanTcp) {
  Options tcp = kPenstock;
  tcp.fabrics = {Fabric::kTcp};
  Options off = kPenstock;
  off.shm_sharing = ShmSharing::kOff;
  for (const Options& options : {tcp, off}) {
    for (bool at_client : {false, true}) {
      EchoServer server(at_client ? kPenstock : options);
      auto channel =
          NewChannel(server.target(), at_client ? options : kPenstock);
      ExpectEchoes(channel, 9, 10);
      EXPECT_EQ(PathTo(channel, server.target()), "http2");
    }
  }
  tcp.policy = Policy::kRequire;
  EchoServer server(kPenstock);
  const grpc::Status status = Echo(NewChannel(server.target(), tcp), "hello");
  EXPECT_NE(status.error_message().find("the settings exclude shm"),
            std::string::npos)
      << status.error_message();
}

TEST(EngineTest, EitherSideMayAskForCopies) {
  Options copy = kPenstock;
  copy.shm_sharing = ShmSharing::kCopy;
  for (bool at_client : {false, true}) {
    EchoServer server(at_client ? kPenstock : copy);
    auto channel = NewChannel(server.target(), at_client ? copy : kPenstock);
    ASSERT_TRUE(ReachesShm(channel, server.target()));
    ExpectEchoes(channel, 12, 20);
    for (const PathReport& report : DescribePaths(*channel)) {
      if (report.peer != server.target()) continue;
      EXPECT_NE(report.detail.find("copied"), std::string::npos)
          << report.detail;
    }
  }
}

TEST(EngineTest, TlsInside) {
  const auto& certificates = e2e::TestCertificates();
  if (!certificates) GTEST_SKIP() << "no openssl command here";
  grpc::SslServerCredentialsOptions server_side;
  server_side.pem_key_cert_pairs.push_back(
      {certificates->server.key, certificates->server.certificate});
  grpc::SslCredentialsOptions client_side;
  client_side.pem_root_certs = certificates->authority.certificate;
  EchoServer server(kPenstock, grpc::SslServerCredentials(server_side));
  auto channel =
      NewChannel(server.target(), kPenstock, grpc::SslCredentials(client_side));
  ASSERT_TRUE(ReachesShm(channel, server.target()));
  ExpectEchoes(channel, 6, 50);
}

class Ticket final : public grpc::MetadataCredentialsPlugin {
  grpc::Status GetMetadata(
      grpc::string_ref, grpc::string_ref, const grpc::AuthContext&,
      std::multimap<grpc::string, grpc::string>* metadata) override {
    metadata->emplace("ticket", "1");
    return grpc::Status::OK;
  }
};

// Tests the warning for credentials for which gRPC does not call Penstock.
TEST(EngineTest, CompositionOutsideIsExplained) {
  const auto& certificates = e2e::TestCertificates();
  if (!certificates) GTEST_SKIP() << "no openssl command here";
  grpc::SslServerCredentialsOptions server_side;
  server_side.pem_key_cert_pairs.push_back(
      {certificates->server.key, certificates->server.certificate});
  grpc::SslCredentialsOptions client_side;
  client_side.pem_root_certs = certificates->authority.certificate;
  EchoServer server(kPenstock, grpc::SslServerCredentials(server_side));
  for (Policy policy : {Policy::kPrefer, Policy::kRequire}) {
    auto channel = grpc::CreateChannel(
        server.target(),
        grpc::CompositeChannelCredentials(
            Credentials(grpc::SslCredentials(client_side), With(policy)),
            grpc::MetadataCredentialsFromPlugin(std::make_unique<Ticket>())));
    const grpc::Status status = Echo(channel, "hello");
    EXPECT_EQ(status.ok(), policy == Policy::kPrefer);
    if (status.ok()) continue;
    EXPECT_NE(status.error_message().find("compose inside"), std::string::npos)
        << status.error_message();
  }
}

TEST(EngineTest, LostPathLosesNoCall) {
  EchoServer server(kPenstock);
  auto channel = NewChannel(server.target(), kPenstock);
  ASSERT_TRUE(ReachesShm(channel, server.target()));
  EchoCall call(channel);
  std::mt19937 random(7);
  for (int i = 0; i < 50; ++i) {
    const std::string text = RandomText(&random);
    std::string echo;
    ASSERT_TRUE(call.Send(text)) << i;
    if (i == 20) LoseAllPaths();  // the echo is on its way
    ASSERT_TRUE(call.Receive(&echo)) << i;
    ASSERT_EQ(echo, text) << i;
  }
  EXPECT_TRUE(call.Finish().ok());
  EXPECT_TRUE(ReachesShm(channel, server.target())) << "by another attempt";
  ExpectEchoes(channel, 8, 20);
}

TEST(EngineTest, RequiredPathThatIsLostEndsTheConnection) {
  EchoServer server(kPenstock);
  auto channel = NewChannel(server.target(), With(Policy::kRequire));
  ASSERT_TRUE(Echo(channel, "hello").ok());
  EchoCall call(channel);
  std::string echo;
  ASSERT_TRUE(call.Send("hello"));
  ASSERT_TRUE(call.Receive(&echo));
  LoseAllPaths();
  EXPECT_FALSE(call.Receive(&echo));
  EXPECT_FALSE(call.Finish().ok());
  EXPECT_TRUE(Echo(channel, "hello").ok()) << "by another connection";
  EXPECT_EQ(PathTo(channel, server.target()), "shm");
}

// Expects that a connection that ends normally logs nothing.
TEST(EngineTest, NormalEndIsNotALostPath) {
  testing::internal::CaptureStderr();
  {
    EchoServer server(kPenstock);
    for (int i = 0; i < 10; ++i) {
      auto channel = NewChannel(server.target(), kPenstock);
      ASSERT_TRUE(ReachesShm(channel, server.target()));
    }
  }
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_EQ(log.find("http2:"), std::string::npos) << log;
}

// Expects that a handler that blocks its thread does not stop other calls.
TEST(EngineTest, BlockedHandlerStopsNobody) {
  EchoServer server(kPenstock);
  auto channel = NewChannel(server.target(), kPenstock);
  ASSERT_TRUE(ReachesShm(channel, server.target()));
  std::thread waits([&] {
    EXPECT_TRUE(
        Echo(NewChannel(server.target(), kPenstock), "late", "/test/Wait")
            .ok());
  });
  server.WaitUntilBlocked();
  ExpectEchoes(channel, 8, 20);
  server.Release();
  waits.join();
}

TEST(EngineTest, ManyChannelsAtOnce) {
  EchoServer server(kPenstock);
  std::vector<std::thread> threads;
  for (uint32_t seed = 1; seed <= 16; ++seed) {
    threads.emplace_back([&server, seed] {
      ExpectEchoes(NewChannel(server.target(), kPenstock), seed, 10);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(EngineTest, ChildThatExecsDisturbsNobody) {
  EchoServer server(kPenstock);
  auto channel = NewChannel(server.target(), kPenstock);
  ASSERT_TRUE(ReachesShm(channel, server.target()));
  EchoCall call(channel);
  const pid_t child = fork();
  if (child == 0) {
    execl("/bin/true", "true", nullptr);
    _exit(1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  std::string echo;
  EXPECT_TRUE(call.Send("hello"));
  EXPECT_TRUE(call.Receive(&echo));
  EXPECT_EQ(PathTo(channel, server.target()), "shm");
}

// Forks, and destroys the channel in the child. The child cannot use gRPC, and
// may hang. The connection belongs to the parent and continues, over either
// path.
TEST(EngineTest, ChildThatDoesNotExecDisturbsNobody) {
  Options over_tcp = kPenstock;
  over_tcp.fabrics = {Fabric::kTcp};
  for (const Options& options : {kPenstock, over_tcp}) {
    EchoServer server(kPenstock);
    auto channel = NewChannel(server.target(), options);
    if (!options.fabrics.has_value()) {
      ASSERT_TRUE(ReachesShm(channel, server.target()));
    }
    auto call = std::make_unique<EchoCall>(channel);
    std::string echo;
    ASSERT_TRUE(call->Send("before"));
    ASSERT_TRUE(call->Receive(&echo));
    const std::string path = PathTo(channel, server.target());
    const pid_t child = fork();
    if (child == 0) {
      alarm(1);
      signal(SIGALRM, SIG_DFL);
      channel.reset();
      call.reset();
      _exit(0);
    }
    ASSERT_EQ(waitpid(child, nullptr, 0), child);
    for (int i = 0; i < 10; ++i) {
      ASSERT_TRUE(call->Send("after"));
      ASSERT_TRUE(call->Receive(&echo));
    }
    EXPECT_EQ(PathTo(channel, server.target()), path);
    EXPECT_TRUE(call->Finish().ok());
    ExpectEchoes(channel, 10, 5);
  }
}

}  // namespace
}  // namespace event_engine
}  // namespace penstock
