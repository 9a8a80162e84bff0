// Tests the promises of DescribePaths, except those about the path and its
// counters.

#include <atomic>
#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "penstock/penstock.h"
#include "tests/e2e/stack_test.h"

namespace penstock::e2e {
namespace {

grpc::ChannelArguments OwnConnections() {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return arguments;
}

class DescribePathsTest : public ServiceTest {};

TEST_P(DescribePathsTest, PeerIsTheAddressOfTheServer) {
  EXPECT_TRUE(DescribePaths(*channel()).empty()) << "before the first call";
  ASSERT_TRUE(MakeEmptyCall(stub_.get()).ok());
  const auto reports = DescribePaths(*channel());
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].peer, "ipv4:" + address());
}

TEST_P(DescribePathsTest, PathsOtherThanTheBestHaveAReason) {
  ASSERT_TRUE(MakeEmptyCall(stub_.get()).ok());
  const auto reports = DescribePaths(*channel());
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].reason.empty(),
            GetParam() == Path::kShm || GetParam() == Path::kVerbs)
      << reports[0];
}

TEST_P(DescribePathsTest, ConnectionThatIsGoneIsNotDescribed) {
  ASSERT_TRUE(MakeEmptyCall(stub_.get()).ok());
  StopServing(std::chrono::milliseconds(0));
  ASSERT_TRUE(channel()->WaitForStateChange(GRPC_CHANNEL_READY, In(kPatience)));
  EXPECT_TRUE(DescribePaths(*channel()).empty());
}

TEST_P(DescribePathsTest, CountsAreOfOneChannel) {
  auto other = NewChannel();
  auto stub = TestService::NewStub(other);
  ASSERT_TRUE(MakeEmptyCall(stub.get()).ok());
  ASSERT_TRUE(MakeEmptyCall(stub.get()).ok());
  ASSERT_TRUE(MakeEmptyCall(stub_.get()).ok());
  ExpectTraffic(*other, 2, 2);
  ExpectTraffic(1, 1);
}

TEST_P(DescribePathsTest, AServerDescribesTheConnectionsThatItHas) {
  EXPECT_TRUE(DescribePaths(*server()).empty());
  ASSERT_TRUE(MakeEmptyCall(stub_.get()).ok());
  ASSERT_TRUE(MakeEmptyCall(stub_.get()).ok());
  const auto reports = DescribePaths(*server());
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].path, FabricOf(GetParam()));
  EXPECT_NE(reports[0].peer, "ipv4:" + address()) << "the client's end";
  const uint64_t messages = IsPenstock(GetParam()) ? 2 : 0;
  EXPECT_EQ(reports[0].messages_sent, messages);
  EXPECT_EQ(reports[0].messages_received, messages);
}

TEST_P(DescribePathsTest, AServerTellsItsClientsApart) {
  if (GetParam() == Path::kStockServer) GTEST_SKIP() << "it has one kind only";
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  std::multiset<std::string> wanted;
  for (const Path path : {GetParam(), Path::kStockClient, GetParam()}) {
    channels.push_back(grpc::CreateCustomChannel(
        address(), CredentialsFor(path, grpc::InsecureChannelCredentials()),
        OwnConnections()));
    auto stub = TestService::NewStub(channels.back());
    ASSERT_TRUE(MakeEmptyCall(stub.get()).ok());
    wanted.insert(FabricOf(path));
  }
  std::multiset<std::string> found;
  std::set<std::string> peers;
  for (const PathReport& report : DescribePaths(*server())) {
    found.insert(report.path);
    EXPECT_TRUE(peers.insert(report.peer).second);
  }
  EXPECT_EQ(found, wanted);
  channels.clear();
  const auto limit = std::chrono::steady_clock::now() + kPatience;
  while (!DescribePaths(*server()).empty()) {
    ASSERT_LT(std::chrono::steady_clock::now(), limit);
    std::this_thread::yield();
  }
}

TEST_P(DescribePathsTest, AServerThatShutsDownIsDescribedToItsEnd) {
  std::vector<std::thread> threads;
  std::atomic<bool> done{false};
  threads.emplace_back([&] {
    while (!done) (void)DescribePaths(*server());
  });
  for (int i = 0; i < 50; ++i) {
    auto channel = NewChannel();
    auto stub = TestService::NewStub(channel);
    ASSERT_TRUE(MakeEmptyCall(stub.get()).ok());
  }
  server()->Shutdown(In(std::chrono::seconds(0)));
  done = true;
  for (std::thread& thread : threads) thread.join();
  // Waits for a stock connection, which is closed only after the shutdown.
  const auto end = In(kPatience);
  while (!DescribePaths(*server()).empty()) {
    ASSERT_LT(std::chrono::system_clock::now(), end);
    std::this_thread::yield();
  }
}

INSTANTIATE_TEST_SUITE_P(Over, DescribePathsTest, EachPath(), PathName());

}  // namespace
}  // namespace penstock::e2e
