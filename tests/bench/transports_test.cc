#include "bench/rpc/setup/transports.h"

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace bench {
namespace {

using ::testing::ElementsAre;

PathReport Path(const std::string& path) {
  PathReport report;
  report.path = path;
  return report;
}

TEST(CheckPathsTest, PenstockPathIsTheOneAskedFor) {
  EXPECT_TRUE(CheckPaths(Transport::kShm, {Path("shm")}).ok());
  EXPECT_TRUE(CheckPaths(Transport::kPenstockTcp, {Path("tcp")}).ok());
}

TEST(CheckPathsTest, AnyOtherPathIsUnavailable) {
  for (const char* path : {"tcp", "http2", ""}) {
    EXPECT_TRUE(absl::IsUnavailable(CheckPaths(Transport::kShm, {Path(path)})))
        << path;
  }
  EXPECT_FALSE(CheckPaths(Transport::kShm, {Path("shm"), Path("tcp")}).ok());
  EXPECT_FALSE(CheckPaths(Transport::kPenstockTcp, {Path("http2")}).ok());
}

TEST(CheckPathsTest, NoReportMeansStockHttp2) {
  EXPECT_FALSE(CheckPaths(Transport::kShm, {}).ok());
  EXPECT_TRUE(CheckPaths(Transport::kTcp, {}).ok());
}

TEST(PenstockOptionsTest, RequireTheOneFabric) {
  const auto options = PenstockOptions(Transport::kShm, "");
  ASSERT_TRUE(options.has_value());
  EXPECT_EQ(*options->policy, Policy::kRequire);
  EXPECT_THAT(*options->fabrics, ElementsAre(Fabric::kShm));
  EXPECT_FALSE(PenstockOptions(Transport::kTcp, "").has_value());
}

TEST(AddressTest, ThePortReplacesTheWildcard) {
  EXPECT_EQ(ConnectAddress("127.0.0.1:0", 50051), "127.0.0.1:50051");
  EXPECT_EQ(ConnectAddress("unix-abstract:a-10", 1), "unix-abstract:a-10");
}

TEST(PenstockOptionsTest, OnlyADeviceThatIsNamedIsAskedFor) {
  EXPECT_EQ(*PenstockOptions(Transport::kVerbs, "rxe1")->verbs_device, "rxe1");
  EXPECT_FALSE(
      PenstockOptions(Transport::kVerbs, "")->verbs_device.has_value());
}

TEST(AddressTest, AServerListensWhereItIsToldTo) {
  EXPECT_EQ(ListenAddress(Transport::kTcp, "10.9.0.2"), "10.9.0.2:0");
  EXPECT_EQ(ListenAddress(Transport::kVerbs, "fe80::2"), "[fe80::2]:0");
}

TEST(AddressTest, EveryUnixSocketHasItsOwnName) {
  EXPECT_NE(ListenAddress(Transport::kUds, ""),
            ListenAddress(Transport::kUds, ""));
}

}  // namespace
}  // namespace bench
}  // namespace penstock
