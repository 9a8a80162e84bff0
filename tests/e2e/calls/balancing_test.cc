// Tests one channel to two servers: gRPC's load balancing policies, and calls
// after the death of one server.

#include <atomic>
#include <chrono>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "penstock/penstock.h"
#include "tests/e2e/scripted_service.h"
#include "tests/e2e/stack_test.h"

namespace penstock::e2e {
namespace {

// One of the two servers. Counts its calls.
class Backend {
 public:
  explicit Backend(Path path) : stack_(path) {
    service_.empty = [this](grpc::ServerContext*) {
      ++calls_;
      return grpc::Status::OK;
    };
    Start();
  }
  ~Backend() { Stop(); }
  void Start() { stack_.Serve(&service_); }
  void Stop() { stack_.StopServing(std::chrono::milliseconds(0)); }
  int calls() const { return calls_; }
  std::string address() const { return stack_.address(); }

 private:
  std::atomic<int> calls_{0};
  ScriptedService service_;
  Stack stack_;
};

class BalancingTest : public testing::TestWithParam<Path> {
 protected:
  void Connect(const std::string& policy) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
    arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 50);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 50);
    arguments.SetLoadBalancingPolicyName(policy);
    channel_ = grpc::CreateCustomChannel(
        absl::StrCat("ipv4:", first_.address(), ",", second_.address()),
        CredentialsFor(GetParam(), grpc::InsecureChannelCredentials()),
        arguments);
    stub_ = TestService::NewStub(channel_);
  }

  // Waits until the channel has `count` connections, all over this test's path.
  // Returns false after a timeout.
  bool AwaitConnections(size_t count) {
    const auto end = In(kPatience);
    while (!AreAllOfPath(count)) {
      if (std::chrono::system_clock::now() > end) return false;
      // Waits in gRPC, which meanwhile polls the channel. Without waiting
      // threads, gRPC polls an idle channel only every five seconds, for one
      // event.
      channel_->WaitForStateChange(channel_->GetState(true),
                                   In(std::chrono::milliseconds(1)));
    }
    return true;
  }
  bool AreAllOfPath(size_t count) {
    const auto reports = DescribePaths(*channel_);
    for (const PathReport& report : reports) {
      if (report.path != FabricOf(GetParam())) return false;
    }
    return reports.size() == count;
  }

  void MakeCalls(int count) {
    for (int i = 0; i < count; ++i) {
      const grpc::Status status = MakeEmptyCall(stub_.get());
      EXPECT_TRUE(status.ok()) << status.error_message();
    }
  }

  // Makes calls, which may fail until the channel has noticed a change.
  bool CallUntilServedBy(const Backend& backend) {
    const int before = backend.calls();
    const auto end = In(kPatience);
    while (backend.calls() == before) {
      if (std::chrono::system_clock::now() > end) return false;
      MakeEmptyCall(stub_.get());
    }
    return true;
  }

  Backend first_{GetParam()};
  Backend second_{GetParam()};
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<TestService::Stub> stub_;
};

TEST_P(BalancingTest, RoundRobinGivesEachServerItsHalf) {
  Connect("round_robin");
  ASSERT_TRUE(CallUntilServedBy(first_));
  ASSERT_TRUE(CallUntilServedBy(second_));
  ASSERT_TRUE(AwaitConnections(2));
  const int first = first_.calls(), second = second_.calls();
  MakeCalls(20);
  EXPECT_EQ(first_.calls() - first, 10);
  EXPECT_EQ(second_.calls() - second, 10);
}

TEST_P(BalancingTest, RoundRobinGoesOnWithTheServerThatIsLeft) {
  Connect("round_robin");
  ASSERT_TRUE(CallUntilServedBy(first_));
  ASSERT_TRUE(CallUntilServedBy(second_));
  first_.Stop();
  ASSERT_TRUE(AwaitConnections(1));
  const int second = second_.calls();
  MakeCalls(20);
  EXPECT_EQ(second_.calls() - second, 20);
  first_.Start();
  EXPECT_TRUE(CallUntilServedBy(first_));
  EXPECT_TRUE(AwaitConnections(2));
}

TEST_P(BalancingTest, PickFirstUsesOneServerWhileItLives) {
  Connect("pick_first");
  MakeCalls(20);
  EXPECT_EQ(first_.calls(), 20);
  EXPECT_TRUE(AwaitConnections(1));
  first_.Stop();
  ASSERT_TRUE(CallUntilServedBy(second_));
  EXPECT_TRUE(AwaitConnections(1));
  MakeCalls(20);
  EXPECT_EQ(first_.calls(), 20);
}

TEST_P(BalancingTest, NoServerLeftIsUnavailableUntilOneComes) {
  Connect("round_robin");
  ASSERT_TRUE(CallUntilServedBy(first_));
  first_.Stop();
  second_.Stop();
  ASSERT_TRUE(AwaitConnections(0));
  EXPECT_EQ(MakeEmptyCall(stub_.get()).error_code(),
            grpc::StatusCode::UNAVAILABLE);
  second_.Start();
  EXPECT_TRUE(CallUntilServedBy(second_));
}

INSTANTIATE_TEST_SUITE_P(Over, BalancingTest, EachDescribedPath(), PathName());

}  // namespace
}  // namespace penstock::e2e
