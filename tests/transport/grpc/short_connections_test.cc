// Tests connections of a process whose connections usually end soon. New
// connections begin on tcp, and get their side path after a while.

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"
#include "penstock/penstock.h"
#include "tests/e2e/call.h"
#include "tests/e2e/test_service.h"
#include "transport/base/steady_time.h"
#include "transport/metrics/registry.h"
#include "transport/paths/short_lives.h"

namespace penstock::e2e {
namespace {

using paths::ShortLives;

Options Over(Policy policy, std::vector<Fabric> fabrics) {
  Options options;
  options.policy = policy;
  options.fabrics = std::move(fabrics);
  return options;
}

const Options kPreferShm = Over(Policy::kPrefer, {Fabric::kShm, Fabric::kTcp});
const Options kRequireShm = Over(Policy::kRequire, {Fabric::kShm});

template <typename Condition>
bool Await(Condition condition) {
  const absl::Time end = absl::Now() + absl::FromChrono(kPatience);
  while (!condition()) {
    if (absl::Now() > end) return false;
    absl::SleepFor(absl::Milliseconds(1));
  }
  return true;
}

class ShortConnectionsTest : public testing::Test {
 protected:
  ShortConnectionsTest() {
    // Records many ends, as if this process had just closed many channels.
    const absl::Time now = base::SteadyNow();
    for (size_t i = 0; i < ShortLives::kMany; ++i) {
      ShortLives::OfProcess()->OnEnd(now, now);
    }
  }
  ~ShortConnectionsTest() override {
    channel_ = nullptr;
    server_->Shutdown(std::chrono::system_clock::now());
    server_->Wait();
  }

  void Serve(const Options& options) {
    grpc::ServerBuilder builder;
    Enable(&builder, options);
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                             &port_);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
  }

  // Makes one call over a new channel.
  grpc::Status ConnectAndCall(const Options& options) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    channel_ = grpc::CreateCustomChannel(
        absl::StrCat("127.0.0.1:", port_),
        Credentials(grpc::InsecureChannelCredentials(), options), arguments);
    return MakeEmptyCall(TestService::NewStub(channel_).get());
  }

  // Returns the path of the only connection.
  std::string Path() {
    const auto reports = DescribePaths(*channel_);
    return reports.size() == 1 ? reports[0].path : "";
  }

  TestServiceImpl service_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
};

TEST_F(ShortConnectionsTest, OneGetsShmOnlyOnceItHasLivedForAWhile) {
  Serve(kPreferShm);
  const absl::Time begin = base::SteadyNow();
  const grpc::Status status = ConnectAndCall(kPreferShm);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_TRUE(Await([this] { return Path() == "shm"; })) << Path();
  EXPECT_GE(base::SteadyNow() - begin, ShortLives::kShort);
  EXPECT_TRUE(MakeEmptyCall(TestService::NewStub(channel_).get()).ok());
}

TEST_F(ShortConnectionsTest, AClientThatRequiresShmHasItAtOnce) {
  Serve(kPreferShm);
  const grpc::Status status = ConnectAndCall(kRequireShm);
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(Path(), "shm");
}

TEST_F(ShortConnectionsTest, AServerThatRequiresShmServesNothingBefore) {
  Serve(kRequireShm);
  const absl::Time begin = base::SteadyNow();
  const grpc::Status status = ConnectAndCall(kPreferShm);
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(Path(), "shm");
  EXPECT_GE(base::SteadyNow() - begin, ShortLives::kShort);
}

TEST_F(ShortConnectionsTest, ThoseThatEndBeforeLeaveNothing) {
  Serve(kPreferShm);
  for (int i = 0; i < 20; ++i) {
    const grpc::Status status = ConnectAndCall(kPreferShm);
    ASSERT_TRUE(status.ok()) << status.error_message();
    channel_ = nullptr;
  }
  EXPECT_TRUE(Await([] {
    const metrics::Snapshot now = metrics::Registry::Get()->Collect();
    return now.Get(metrics::Metric::kHalfOpen, {}) == 0;
  }));
}

}  // namespace
}  // namespace penstock::e2e
