// Tests that Define()'s timeout limits all its calls together.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "ps/client/define.h"
#include "ps/wire/ps.grpc.pb.h"
#include "tests/ps/client/one_table.h"
#include "tests/transport/base/set_clock.h"

namespace penstock::ps {
namespace {

// A server that is defined once. Moves the steady clock on by kStep in each
// call, and records how much time the caller has allowed for the call.
class SlowServer final : public v1::ParameterServer::Service {
 public:
  static constexpr absl::Duration kStep = absl::Minutes(1);

  grpc::Status Describe(grpc::ServerContext* context,
                        const v1::DescribeRequest* /*request*/,
                        v1::ServerReport* /*reply*/) override {
    absl::MutexLock lock(&mu_);
    return Pass(*context);
  }
  grpc::Status GetModel(grpc::ServerContext* context,
                        const v1::GetModelRequest* /*request*/,
                        v1::GetModelReply* reply) override {
    absl::MutexLock lock(&mu_);
    if (is_defined_) *reply = Description();
    return Pass(*context);
  }
  grpc::Status ChooseCut(grpc::ServerContext* context,
                         const v1::ChooseCutRequest* /*request*/,
                         v1::ChooseCutReply* reply) override {
    absl::MutexLock lock(&mu_);
    reply->set_run(Description().run());
    return Pass(*context);
  }
  grpc::Status Define(grpc::ServerContext* context,
                      const v1::DefineRequest* request,
                      v1::DefineReply* reply) override {
    absl::MutexLock lock(&mu_);
    is_defined_ = true;
    reply->set_run(request->run());
    return Pass(*context);
  }

  // Returns the time that each call had, in the order of the calls.
  std::vector<absl::Duration> allowed() const {
    absl::MutexLock lock(&mu_);
    return allowed_;
  }

 private:
  grpc::Status Pass(const grpc::ServerContext& context)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    allowed_.push_back(absl::FromChrono(context.deadline()) - absl::Now());
    MoveSteadyClockBy(kStep);
    return grpc::Status::OK;
  }

  mutable absl::Mutex mu_;
  bool is_defined_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<absl::Duration> allowed_ ABSL_GUARDED_BY(mu_);
};

TEST(DefineTimeoutTest, TheTimeoutLimitsAllCallsTogether) {
  constexpr absl::Duration kRounding = absl::Seconds(30);  // by gRPC
  SlowServer slow;
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                           &port);
  builder.RegisterService(&slow);
  const auto server = builder.BuildAndStart();
  Definition definition;
  definition.addresses = {absl::StrCat("127.0.0.1:", port)};
  definition.servers = {grpc::CreateChannel(
      definition.addresses[0], grpc::InsecureChannelCredentials())};
  definition.model = OneTable();
  const auto defined = Define(definition);
  ASSERT_TRUE(defined.ok()) << defined.status();
  const std::vector<absl::Duration> allowed = slow.allowed();
  ASSERT_EQ(allowed.size(), 6u);
  for (size_t call = 0; call < allowed.size(); ++call) {
    EXPECT_LE(allowed[call],
              definition.timeout -
                  static_cast<int64_t>(call) * SlowServer::kStep + kRounding)
        << "call " << call;
  }
}

}  // namespace
}  // namespace penstock::ps
