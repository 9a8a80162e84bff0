// Tests that a proxy which drops silent connections keeps a connection whose
// calls use another path.

#include <chrono>
#include <cstdlib>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "penstock/penstock.h"
#include "tests/e2e/stack_test.h"
#include "tests/transport/rpc/cutting_proxy.h"

namespace penstock::e2e {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kSilence(1000);
constexpr milliseconds kHeartbeat(100);

class HeartbeatTest : public StackTest {
 protected:
  ~HeartbeatTest() override {
    stub_ = nullptr;
    channel_ = nullptr;
    StopServing(milliseconds(0));
    unsetenv("PENSTOCK_HEARTBEAT_MS");
  }

  void Begin(milliseconds heartbeat, grpc::ChannelArguments arguments = {}) {
    setenv("PENSTOCK_HEARTBEAT_MS", absl::StrCat(heartbeat.count()).c_str(), 1);
    Serve(&service_, [](grpc::ServerBuilder* builder) {
      builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
      builder->AddChannelArgument(
          GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 1);
    });
    int port = 0;
    ASSERT_TRUE(
        absl::SimpleAtoi(address().substr(address().rfind(':') + 1), &port));
    proxy_.CutAfterSilence(kSilence);
    proxy_.Set(port, SIZE_MAX);
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    channel_ = grpc::CreateCustomChannel(
        absl::StrCat("127.0.0.1:", proxy_.port()),
        CredentialsFor(path(), grpc::InsecureChannelCredentials()), arguments);
    stub_ = TestService::NewStub(channel_);
  }
  void Call() {
    const grpc::Status status = MakeEmptyCall(stub_.get());
    EXPECT_TRUE(status.ok()) << status.error_message();
  }

  TestServiceImpl service_;
  rpc::CuttingProxy proxy_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<TestService::Stub> stub_;
};

TEST_P(HeartbeatTest, ConnectionInUseIsNotSilent) {
  Begin(kHeartbeat);
  EXPECT_TRUE(proxy_.OutlivesSilence([this] { Call(); }));
  ExpectPath(*channel_);
  EXPECT_EQ(proxy_.connections(), 1u);
}

// Tests that an idle connection sends nothing, as over HTTP/2. The proxy then
// cuts the connection.
TEST_P(HeartbeatTest, IdleConnectionIsAsSilentAsOverHttp2) {
  Begin(kHeartbeat);
  Call();
  ExpectPath(*channel_);
  EXPECT_TRUE(proxy_.AwaitEnd(kPatience));
}

TEST_P(HeartbeatTest, KeepalivesPingsKeepAnIdleConnectionUp) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 100);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  Begin(milliseconds(0), arguments);
  Call();
  EXPECT_TRUE(proxy_.OutlivesSilence([] {}));
  Call();
  ExpectPath(*channel_);
  EXPECT_EQ(proxy_.connections(), 1u);
}

INSTANTIATE_TEST_SUITE_P(Over, HeartbeatTest,
                         testing::Values(IsInVm() ? Path::kVerbs : Path::kShm),
                         PathName());

}  // namespace
}  // namespace penstock::e2e
