// Tests Options::policy and Options::fabrics: which path results from the
// options of the two sides.

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"
#include "penstock/penstock.h"
#include "tests/e2e/call.h"
#include "tests/e2e/test_service.h"

namespace penstock::e2e {
namespace {

using testing::HasSubstr;

constexpr Policy kRequire = Policy::kRequire;
constexpr Policy kPrefer = Policy::kPrefer;
const std::vector<Fabric> kShm = {Fabric::kShm};
const std::vector<Fabric> kTcp = {Fabric::kTcp};
const std::vector<Fabric> kBoth = {Fabric::kShm, Fabric::kTcp};

// One side's options; nullopt for a side without Penstock.
using Side = absl::optional<Options>;
const Side kStock = absl::nullopt;

Side With(Policy policy, const std::vector<Fabric>& fabrics = kBoth) {
  Options options;
  options.policy = policy;
  options.fabrics = fabrics;
  return options;
}

class PolicyTest : public testing::Test {
 protected:
  ~PolicyTest() override {
    if (server_ == nullptr) return;
    server_->Shutdown(std::chrono::system_clock::now());
    server_->Wait();
  }

  void Serve(const Side& side) {
    grpc::ServerBuilder builder;
    if (side.has_value()) Enable(&builder, *side);
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                             &port_);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
  }

  void Connect(const Side& side) {
    auto credentials = grpc::InsecureChannelCredentials();
    if (side.has_value()) credentials = Credentials(credentials, *side);
    channel_ =
        grpc::CreateChannel(absl::StrCat("127.0.0.1:", port_), credentials);
    stub_ = TestService::NewStub(channel_);
  }

  // Expects that the calls use `path`. Returns the reported reason why no
  // better path is used.
  std::string ExpectPath(const std::string& path) {
    const grpc::Status status = MakeEmptyCall(stub_.get());
    EXPECT_TRUE(status.ok()) << status.error_message();
    const auto reports = DescribePaths(*channel_);
    EXPECT_EQ(reports.size(), 1u);
    if (reports.size() != 1) return "";
    EXPECT_EQ(reports[0].path, path) << reports[0];
    EXPECT_EQ(reports[0].messages_sent, path == "http2" ? 0u : 1u);
    return reports[0].reason;
  }

  // Returns the message of the status.
  std::string ExpectRefused() {
    const grpc::Status status = MakeEmptyCall(stub_.get());
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
    EXPECT_TRUE(DescribePaths(*channel_).empty());
    return status.error_message();
  }

  TestServiceImpl service_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<TestService::Stub> stub_;
};

TEST_F(PolicyTest, ClientThatRequiresPenstockRefusesAStockServer) {
  Serve(kStock);
  Connect(With(kRequire));
  EXPECT_THAT(ExpectRefused(),
              HasSubstr("Penstock policy is \"require shm,tcp\", but the peer "
                        "does not speak Penstock (PENSTOCK_POLICY=prefer would "
                        "fall back to HTTP/2)"));
}

TEST_F(PolicyTest, ClientThatRequiresShmRefusesAServerThatHasOnlyTcp) {
  Serve(With(kPrefer, kTcp));
  Connect(With(kRequire, kShm));
  const std::string message = ExpectRefused();
  EXPECT_THAT(message, HasSubstr("Penstock policy is \"require shm\", but "));
  EXPECT_THAT(message,
              HasSubstr("(PENSTOCK_POLICY=prefer would fall back to tcp)"));
}

TEST_F(PolicyTest, ServerThatRequiresPenstockRefusesAStockClient) {
  Serve(With(kRequire));
  Connect(kStock);
  ExpectRefused();
}

TEST_F(PolicyTest, ServerThatRequiresShmRefusesAClientThatHasOnlyTcp) {
  Serve(With(kRequire, kShm));
  Connect(With(kPrefer, kTcp));
  // Calls repeatedly until a call is refused, because the server may accept
  // calls until the path is decided.
  const auto end = In(kPatience);
  grpc::Status status;
  while (status.ok() && std::chrono::system_clock::now() < end) {
    status = MakeEmptyCall(stub_.get());
  }
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE)
      << status.error_message();
}

TEST_F(PolicyTest, WhatIsRequiredAndCanBeHadIsTaken) {
  for (const auto& fabrics : {kShm, kBoth}) {
    Serve(With(kRequire, fabrics));
    Connect(With(kRequire, fabrics));
    EXPECT_EQ(ExpectPath("shm"), "");
  }
  Serve(With(kRequire, kTcp));
  Connect(With(kRequire, kTcp));
  ExpectPath("tcp");
}

TEST_F(PolicyTest, RequirementsAreMetByAPeerThatOnlyPrefers) {
  Serve(With(kRequire, kShm));
  Connect(With(kPrefer));
  EXPECT_EQ(ExpectPath("shm"), "");
}

TEST_F(PolicyTest, ClientThatPrefersShmFallsBackToTcp) {
  Serve(With(kPrefer, kTcp));
  Connect(With(kPrefer));
  EXPECT_NE(ExpectPath("tcp"), "");
}

TEST_F(PolicyTest, ClientThatWantsOnlyTcpGetsIt) {
  Serve(With(kPrefer));
  Connect(With(kPrefer, kTcp));
  EXPECT_NE(ExpectPath("tcp"), "");
}

TEST_F(PolicyTest, OrderOfTheClientDecides) {
  Serve(With(kPrefer));
  Connect(With(kPrefer, {Fabric::kTcp, Fabric::kShm}));
  ExpectPath("tcp");
}

TEST_F(PolicyTest, ClientThatPrefersPenstockFallsBackToHttp2) {
  Serve(kStock);
  Connect(With(kPrefer));
  EXPECT_NE(ExpectPath("http2"), "");
}

TEST_F(PolicyTest, ServerThatPrefersPenstockServesAStockClient) {
  Serve(With(kPrefer));
  Connect(kStock);
  ExpectPath("http2");
}

TEST_F(PolicyTest, OffIsStockAtEitherSide) {
  Serve(With(Policy::kOff));
  Connect(With(kPrefer));
  ExpectPath("http2");
  Serve(With(kPrefer));
  Connect(With(Policy::kOff));
  ExpectPath("http2");
}

TEST_F(PolicyTest, ServerThatIsOffDoesNotMeetARequirement) {
  Serve(With(Policy::kOff));
  Connect(With(kRequire));
  EXPECT_THAT(ExpectRefused(), HasSubstr("does not speak Penstock"));
}

// Tests channels that differ only in Penstock's options. gRPC shares
// connections of equal channels.
TEST_F(PolicyTest, ChannelsOfDifferentOptionsShareNoConnection) {
  Serve(With(kPrefer));
  Connect(With(kPrefer, kTcp));
  ExpectPath("tcp");
  auto first = channel_;
  Connect(With(kPrefer));
  ExpectPath("shm");
  EXPECT_EQ(DescribePaths(*first)[0].path, "tcp");
}

TEST_F(PolicyTest, SizesAreShownAndMayBeFixed) {
  Serve(With(kPrefer));
  Connect(With(kPrefer, kTcp));
  ExpectPath("tcp");
  EXPECT_EQ(DescribePaths(*channel_)[0].eager_max_bytes, 32704u);
  EXPECT_EQ(DescribePaths(*channel_)[0].chunk_bytes, 256u * 1024);
  Side options = With(kPrefer, kTcp);
  options->eager_max_bytes = 100;
  options->chunk_bytes = 5000;
  Connect(options);
  ExpectPath("tcp");
  EXPECT_EQ(DescribePaths(*channel_)[0].eager_max_bytes, 100u);
  EXPECT_EQ(DescribePaths(*channel_)[0].chunk_bytes, 5000u);
}

TEST_F(PolicyTest, ChannelsOfEqualOptionsShareAConnection) {
  Serve(With(kPrefer));
  Connect(With(kPrefer));
  ExpectPath("shm");
  auto first = channel_;
  Connect(With(kPrefer));
  ASSERT_TRUE(MakeEmptyCall(stub_.get()).ok());
  EXPECT_EQ(DescribePaths(*first)[0].messages_sent, 2u);
}

TEST_F(PolicyTest, RequirementThatMakesNoSenseStartsNothing) {
  grpc::ServerBuilder builder;
  Enable(&builder, *With(kRequire, {}));
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                           &port_);
  builder.RegisterService(&service_);
  EXPECT_EQ(builder.BuildAndStart(), nullptr);
  Serve(With(kPrefer));
  Connect(With(kRequire, {}));
  EXPECT_FALSE(MakeEmptyCall(stub_.get()).ok());
}

}  // namespace
}  // namespace penstock::e2e
