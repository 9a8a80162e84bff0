// What DescribePaths promises beyond the path and its counts.

#include "gtest/gtest.h"
#include "penstock/penstock.h"
#include "tests/e2e/stack_test.h"

namespace penstock::e2e {
namespace {

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

INSTANTIATE_TEST_SUITE_P(Over, DescribePathsTest, EachPath(), PathName());

}  // namespace
}  // namespace penstock::e2e
