// Tests that the timeout of Define() limits all its calls together.

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
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
#include "grpcpp/support/client_interceptor.h"
#include "ps/client/define.h"
#include "ps/wire/ps.grpc.pb.h"
#include "tests/ps/client/one_table.h"
#include "tests/transport/base/set_clock.h"

namespace penstock::ps {
namespace {

namespace experimental = grpc::experimental;

// The time by which each call moves the steady clock forward.
constexpr absl::Duration kStep = absl::Minutes(1);

// A server that is defined once, and is slow: the steady clock moves in each
// call.
class SlowServer final : public v1::ParameterServer::Service {
 public:
  grpc::Status Describe(grpc::ServerContext* /*context*/,
                        const v1::DescribeRequest* /*request*/,
                        v1::ServerReport* /*reply*/) override {
    return Pass();
  }
  grpc::Status GetModel(grpc::ServerContext* /*context*/,
                        const v1::GetModelRequest* /*request*/,
                        v1::GetModelReply* reply) override {
    if (is_defined_) *reply = Description();
    return Pass();
  }
  grpc::Status ChooseCut(grpc::ServerContext* /*context*/,
                         const v1::ChooseCutRequest* /*request*/,
                         v1::ChooseCutReply* reply) override {
    reply->set_run(Description().run());
    return Pass();
  }
  grpc::Status Define(grpc::ServerContext* /*context*/,
                      const v1::DefineRequest* request,
                      v1::DefineReply* reply) override {
    is_defined_ = true;
    reply->set_run(request->run());
    return Pass();
  }

 private:
  static grpc::Status Pass() {
    MoveSteadyClockBy(kStep);
    return grpc::Status::OK;
  }

  std::atomic<bool> is_defined_{false};
};

// Records the time limit of each call as the caller sets it. The server's view
// of the limit is not reliable here: gRPC caches the time of threads, so after
// a jump of the clock it may compute a limit with an old time.
class Limits final : public experimental::ClientInterceptorFactoryInterface {
 public:
  explicit Limits(std::vector<absl::Duration>* limits) : limits_(limits) {}

  experimental::Interceptor* CreateClientInterceptor(
      experimental::ClientRpcInfo* call) override {
    limits_->push_back(absl::FromChrono(call->client_context()->deadline()) -
                       absl::Now());
    return nullptr;  // leaves the call unchanged
  }

 private:
  std::vector<absl::Duration>* const limits_;
};

TEST(DefineTimeoutTest, TheTimeoutLimitsAllCallsTogether) {
  SlowServer slow;
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                           &port);
  builder.RegisterService(&slow);
  const auto server = builder.BuildAndStart();
  std::vector<absl::Duration> limits;
  std::vector<std::unique_ptr<experimental::ClientInterceptorFactoryInterface>>
      interceptors;
  interceptors.push_back(std::make_unique<Limits>(&limits));
  Definition definition;
  definition.addresses = {absl::StrCat("127.0.0.1:", port)};
  definition.servers = {experimental::CreateCustomChannelWithInterceptors(
      definition.addresses[0], grpc::InsecureChannelCredentials(), {},
      std::move(interceptors))};
  definition.model = OneTable();
  const auto defined = Define(definition);
  ASSERT_TRUE(defined.ok()) << defined.status();
  ASSERT_EQ(limits.size(), 6u);
  for (size_t call = 0; call < limits.size(); ++call) {
    EXPECT_LE(limits[call],
              definition.timeout - static_cast<int64_t>(call) * kStep)
        << "call " << call;
  }
}

}  // namespace
}  // namespace penstock::ps
