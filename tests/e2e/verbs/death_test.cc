// Kills, stops and ends the other process. Tests that this process then frees
// the objects of its connections.

#include <dirent.h>

#include <chrono>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "tests/e2e/call.h"
#include "tests/e2e/child.h"
#include "tests/e2e/verbs/echo.h"
#include "tests/e2e/verbs/rig.h"
#include "tests/e2e/verbs/traffic.h"

namespace penstock::e2e {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kReconnects = 30;
// The number of rounds after which all permanent objects exist.
constexpr int kWarmUp = 5;
constexpr int kDeaths = 4;
constexpr size_t kLarge = 1 << 20;
// The keepalive's interval and timeout, scaled for the slow guest.
constexpr milliseconds kKeepalive(1000);
constexpr seconds kNoticed(8);

size_t CountDescriptors() {
  size_t count = 0;
  DIR* entries = opendir("/proc/self/fd");
  while (readdir(entries) != nullptr) ++count;
  closedir(entries);
  return count;
}

size_t ResidentPages() {
  size_t mapped = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> mapped >> resident;
  return resident;
}

class VerbsDeathTest : public VerbsRig {
 protected:
  void SetUp() override {
    VerbsRig::SetUp();
    if (!IsSkipped()) StartServer();
  }

  void StartServer() {
    server_ = Child::Start(
        {"tests/e2e/verbs/peer", "server", "127.0.0.1:0"},
        {"PENSTOCK_FABRICS=verbs,tcp", "PENSTOCK_VERBS_DEVICE=rxe1"});
    ASSERT_NE(server_, nullptr);
    const auto port = server_->Find("port ");
    ASSERT_TRUE(port.has_value());
    server_address_ = "127.0.0.1:" + *port;
  }

  // Connects over verbs, and echoes a large message.
  void Connect() {
    grpc::ChannelArguments arguments = OwnConnection();
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepalive.count());
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepalive.count());
    channel_ = grpc::CreateCustomChannel(
        server_address_,
        Credentials(grpc::InsecureChannelCredentials(), VerbsAt("rxe0")),
        arguments);
    stub_ = TestService::NewStub(channel_);
    const grpc::Status status = Echo(stub_.get(), 1, kLarge);
    ASSERT_TRUE(status.ok()) << status.error_message();
    ASSERT_EQ(PathOf(channel_.get()).path, "verbs") << PathOf(channel_.get());
  }

  void Disconnect() {
    stub_.reset();
    channel_.reset();
  }

  // Opens a call, waits for its answer, and keeps it open.
  std::unique_ptr<Stream> OpenStream(grpc::ClientContext* context) {
    auto stream = stub_->FullDuplexCall(context);
    StreamingOutputCallRequest request;
    *request.mutable_payload() = NumberedPayload(2, 100);
    StreamingOutputCallResponse response;
    EXPECT_TRUE(stream->Write(request) && stream->Read(&response));
    return stream;
  }

  // Calls `end`, and expects that every running call fails within the timeout.
  void ExpectUnavailableAfter(void (Child::*end)(), milliseconds time) {
    std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
    std::vector<std::unique_ptr<Stream>> streams;
    for (int i = 0; i < 4; ++i) {
      contexts.push_back(std::make_unique<grpc::ClientContext>());
      contexts.back()->set_deadline(In(seconds(60)));
      streams.push_back(OpenStream(contexts.back().get()));
    }
    const auto start = std::chrono::steady_clock::now();
    (server_.get()->*end)();
    for (auto& stream : streams) {
      const grpc::Status status = stream->Finish();
      EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE)
          << status.error_message();
    }
    const auto took = std::chrono::duration_cast<milliseconds>(
        std::chrono::steady_clock::now() - start);
    EXPECT_LT(took, time);
    printf("  noticed after %d ms\n", static_cast<int>(took.count()));
  }

  static void ExpectObjects(const std::string& expected) {
    EXPECT_TRUE(
        Await(seconds(15), [&] { return RdmaObjects().text == expected; }))
        << "were " << expected << "; are " << RdmaObjects().text;
  }

  std::unique_ptr<Child> server_;
  std::string server_address_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<TestService::Stub> stub_;
};

TEST_F(VerbsDeathTest, AKilledServerIsNoticedAndLeavesNothing) {
  Connect();
  const std::string connected = RdmaObjects().text;
  Disconnect();
  ASSERT_TRUE(Await(seconds(15), [&] {
    return RdmaObjects().text != connected;
  })) << connected;
  const std::string before = RdmaObjects().text;
  printf("  connected: %s\n  before: %s\n", connected.c_str(), before.c_str());
  for (int i = 0; i < kDeaths; ++i) {
    if (i > 0) StartServer();
    Connect();
    ExpectUnavailableAfter(&Child::Kill, seconds(1));
    Disconnect();
  }
  ExpectObjects(before);
}

TEST_F(VerbsDeathTest, AStoppedServerIsNoticedByKeepalive) {
  Connect();
  Disconnect();
  const std::string before = RdmaObjects().text;
  Connect();
  ExpectUnavailableAfter(&Child::Suspend, kNoticed);
  Disconnect();
  ExpectObjects(before);
  // Resumes the server, which must continue normally.
  server_->Resume();
  Connect();
}

TEST_F(VerbsDeathTest, ReconnectingKeepsEverythingFlat) {
  std::string objects;
  size_t descriptors = 0, pages = 0;
  for (int i = 0; i < kReconnects; ++i) {
    Connect();
    Disconnect();
    if (i != kWarmUp) continue;
    objects = RdmaObjects().text;
    descriptors = CountDescriptors();
    pages = ResidentPages();
  }
  ExpectObjects(objects);
  EXPECT_TRUE(
      Await(seconds(10), [&] { return CountDescriptors() <= descriptors; }))
      << CountDescriptors() << " descriptors, were " << descriptors;
  // Allows 8 MiB of growth, a quarter of the bytes that these connections have
  // sent.
  EXPECT_LE(ResidentPages(), pages + 2048);
}

// Tests the server's side, which survives its clients.
TEST_F(VerbsDeathTest, KilledClientsLeaveNothingInAServer) {
  EchoService service;
  Serve(&service, VerbsAt("rxe1"));
  std::string before;
  for (int i = 0; i < kDeaths; ++i) {
    if (i == 1) before = RdmaObjects().text;
    auto client = Child::Start(
        {"tests/e2e/verbs/peer", "client", address(), "1", "1000000", "100000"},
        {"PENSTOCK_FABRICS=verbs,tcp", "PENSTOCK_VERBS_DEVICE=rxe0"});
    ASSERT_NE(client, nullptr);
    ASSERT_TRUE(client->Find("2").has_value()) << "no line of its log";
    client->Kill();
    if (i == 0) {
      EXPECT_TRUE(Await(seconds(15), [] {
        return absl::StrContains(RdmaObjects().text, "qp 0");
      })) << RdmaObjects().text;
    }
  }
  ExpectObjects(before);
  StopServing();
}

}  // namespace
}  // namespace penstock::e2e
