#include "bench/rpc/setup/transports.h"

#include <tuple>

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
  const auto options = PenstockOptions(Transport::kShm, Side::kServer, "");
  ASSERT_TRUE(options.has_value());
  EXPECT_EQ(*options->policy, Policy::kRequire);
  EXPECT_THAT(*options->fabrics, ElementsAre(Fabric::kShm));
  EXPECT_FALSE(PenstockOptions(Transport::kTcp, Side::kServer, "").has_value());
}

TEST(PenstockOptionsTest, OneSideIsStock) {
  for (const auto& [transport, own, stock] :
       {std::make_tuple(Transport::kPenstockClient, Side::kClient,
                        Side::kServer),
        std::make_tuple(Transport::kPenstockServer, Side::kServer,
                        Side::kClient)}) {
    EXPECT_EQ(*PenstockOptions(transport, own, "")->policy, Policy::kPrefer);
    EXPECT_FALSE(PenstockOptions(transport, stock, "").has_value());
  }
}

TEST(AddressTest, ThePortReplacesTheWildcard) {
  EXPECT_EQ(ConnectAddress("127.0.0.1:0", 50051), "127.0.0.1:50051");
  EXPECT_EQ(ConnectAddress("unix-abstract:a-10", 1), "unix-abstract:a-10");
}

TEST(PenstockOptionsTest, OnlyADeviceThatIsNamedIsAskedFor) {
  EXPECT_EQ(
      *PenstockOptions(Transport::kVerbs, Side::kClient, "rxe1")->verbs_device,
      "rxe1");
  EXPECT_FALSE(PenstockOptions(Transport::kVerbs, Side::kClient, "")
                   ->verbs_device.has_value());
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
