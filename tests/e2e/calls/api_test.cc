// Tests all pairs of gRPC's client and server APIs, over each path.

#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/e2e/calls/clients.h"
#include "tests/e2e/calls/servers.h"
#include "tests/e2e/stack_test.h"

namespace penstock::e2e {
namespace {

using Apis = std::tuple<Path, Api, Api>;  // the client's, the server's

class ApiTest : public testing::TestWithParam<Apis>, public Stack {
 protected:
  ApiTest() : Stack(std::get<0>(GetParam())) {}

  void SetUp() override {
    service_ = MakeApiServer(std::get<2>(GetParam()));
    Serve(nullptr, [this](grpc::ServerBuilder* builder) {
      service_->Register(builder);
    });
    service_->Begin();
    stub_ = TestService::NewStub(channel());
  }
  ~ApiTest() override {
    server()->Shutdown(std::chrono::system_clock::now());
    service_->End();
    StopServing(std::chrono::milliseconds(0));
  }

  Api client() const { return std::get<1>(GetParam()); }

  void ExpectUnary(size_t size) {
    const Ending unary = MakeUnaryCall(client(), stub_.get(), size);
    EXPECT_TRUE(unary.status.ok()) << unary.status.error_message();
    EXPECT_EQ(unary.sizes, std::vector<size_t>{size});
  }

  // The sizes of the messages, in bytes: small messages, announced ones, and
  // small ones again.
  const std::vector<size_t> sizes_ = {0, 10, 20000, 300000, 1, 60000, 5};
  std::unique_ptr<ApiServer> service_;
  std::unique_ptr<TestService::Stub> stub_;
};

TEST_P(ApiTest, CallsOfEitherKindAreAnsweredInFull) {
  ExpectUnary(100000);
  const Ending duplex = MakeDuplexCall(client(), stub_.get(), sizes_, false);
  EXPECT_TRUE(duplex.status.ok()) << duplex.status.error_message();
  EXPECT_EQ(duplex.sizes, sizes_);
  EXPECT_FALSE(service_->AwaitCancelled());
  ExpectTraffic(1 + sizes_.size(), 1 + sizes_.size());
}

TEST_P(ApiTest, CancelledCallIsCancelledAtBothSides) {
  ExpectUnary(10);
  const Ending duplex = MakeDuplexCall(client(), stub_.get(), sizes_, true);
  EXPECT_EQ(duplex.status.error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_EQ(duplex.sizes, sizes_);
  EXPECT_TRUE(service_->AwaitCancelled());
  ExpectPath(*channel());
}

INSTANTIATE_TEST_SUITE_P(
    Over, ApiTest,
    testing::Combine(EachPath(),
                     testing::Values(Api::kSync, Api::kAsync, Api::kCallback),
                     testing::Values(Api::kSync, Api::kAsync, Api::kCallback)),
    [](const testing::TestParamInfo<Apis>& info) {
      return absl::StrCat(NameOf(std::get<0>(info.param)),
                          NameOf(std::get<1>(info.param)), "Client",
                          NameOf(std::get<2>(info.param)), "Server");
    });

}  // namespace
}  // namespace penstock::e2e
