// Tests that a proxy which drops silent connections keeps a connection whose
// calls use another path.

#include <chrono>
#include <cstdlib>
#include <thread>

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
  // Makes a call every 50 ms for `time`.
  void CallFor(milliseconds time) {
    const auto end = In(time);
    while (std::chrono::system_clock::now() < end) {
      const grpc::Status status = MakeEmptyCall(stub_.get());
      ASSERT_TRUE(status.ok()) << status.error_message();
      std::this_thread::sleep_for(milliseconds(50));
    }
  }

  TestServiceImpl service_;
  rpc::CuttingProxy proxy_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<TestService::Stub> stub_;
};

TEST_P(HeartbeatTest, ConnectionInUseIsNotSilent) {
  Begin(kHeartbeat);
  CallFor(5 * kSilence / 2);
  ExpectPath(*channel_);
  EXPECT_EQ(proxy_.connections(), 1u);
  EXPECT_EQ(proxy_.ended(), 0u);
}

// Tests that an idle connection sends nothing, as over HTTP/2.
TEST_P(HeartbeatTest, IdleConnectionIsAsSilentAsOverHttp2) {
  Begin(kHeartbeat);
  CallFor(3 * kHeartbeat);
  std::this_thread::sleep_for(3 * kHeartbeat);
  const size_t carried = proxy_.carried();
  std::this_thread::sleep_for(3 * kHeartbeat);
  EXPECT_EQ(proxy_.carried(), carried);
}

TEST_P(HeartbeatTest, KeepalivesPingsKeepAnIdleConnectionUp) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 100);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  Begin(milliseconds(0), arguments);
  ASSERT_TRUE(MakeEmptyCall(stub_.get()).ok());
  std::this_thread::sleep_for(2 * kSilence);
  EXPECT_TRUE(MakeEmptyCall(stub_.get()).ok());
  ExpectPath(*channel_);
  EXPECT_EQ(proxy_.connections(), 1u);
  EXPECT_EQ(proxy_.ended(), 0u);
}

// Shows that the proxy cuts a connection without heartbeats. Uses an idle
// connection, because doorbells keep a busy one alive.
TEST_P(HeartbeatTest, WithoutHeartbeatAnIdleConnectionIsCut) {
  Begin(milliseconds(0));
  ASSERT_TRUE(MakeEmptyCall(stub_.get()).ok());
  const auto limit = In(kPatience);
  while (proxy_.ended() == 0) {
    ASSERT_LT(std::chrono::system_clock::now(), limit);
    std::this_thread::sleep_for(milliseconds(10));
  }
}

INSTANTIATE_TEST_SUITE_P(Over, HeartbeatTest,
                         testing::Values(IsInVm() ? Path::kVerbs : Path::kShm),
                         PathName());

}  // namespace
}  // namespace penstock::e2e
