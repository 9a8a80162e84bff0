// Tests grpc::ResourceQuota with almost no memory. Calls may be refused, as in
// stock gRPC, but none may hang, and the connection must remain usable.

#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "grpcpp/resource_quota.h"
#include "gtest/gtest.h"
#include "tests/e2e/stack_test.h"

namespace penstock::e2e {
namespace {

class QuotaTest : public StackTest {
 protected:
  // Stops the server before its service is destroyed.
  ~QuotaTest() override { StopServing(std::chrono::milliseconds(0)); }

  void ServeWith(const grpc::ResourceQuota& quota) {
    Serve(&service_, [&](grpc::ServerBuilder* builder) {
      builder->SetResourceQuota(quota);
    });
  }

  // Returns true if the code is OK or a refusal. A stream is refused if it
  // lacks memory or a thread, or if its connection was closed to free memory.
  static bool IsServedOrRefused(grpc::StatusCode code) {
    return code == grpc::StatusCode::OK ||
           code == grpc::StatusCode::RESOURCE_EXHAUSTED ||
           code == grpc::StatusCode::UNAVAILABLE;
  }

  static grpc::Status MakeStream(TestService::Stub* stub, size_t bytes) {
    Call call;
    auto stream = stub->FullDuplexCall(&call);
    for (int i = 0; i < 5 && PingPong(stream.get(), bytes); ++i) {
    }
    stream->WritesDone();
    return stream->Finish();
  }

  // Makes many concurrent streams over `channel`.
  static void CallFromManyThreads(const std::shared_ptr<grpc::Channel>& channel,
                                  size_t bytes) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&] {
        auto stub = TestService::NewStub(channel);
        const grpc::Status status = MakeStream(stub.get(), bytes);
        EXPECT_TRUE(IsServedOrRefused(status.error_code()))
            << status.error_code() << ": " << status.error_message();
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  // Expects that a single call is served eventually.
  static void ExpectServes(const std::shared_ptr<grpc::Channel>& channel) {
    auto stub = TestService::NewStub(channel);
    const auto end = In(kPatience);
    grpc::Status status = MakeEmptyCall(stub.get());
    while (!status.ok() && std::chrono::system_clock::now() < end) {
      status = MakeEmptyCall(stub.get());
    }
    EXPECT_TRUE(status.ok()) << status.error_message();
  }

  TestServiceImpl service_;
};

TEST_P(QuotaTest, ServerOfFewThreadsServesOrRefuses) {
  grpc::ResourceQuota quota("few threads");
  quota.SetMaxThreads(4);
  ServeWith(quota);
  CallFromManyThreads(channel(), 1000);
  ExpectServes(channel());
  ExpectPath(*channel());
}

TEST_P(QuotaTest, ServerOfLittleMemoryServesOrRefuses) {
  if (kIsEventEngine && FabricOf(GetParam()) == "http2") {
    GTEST_SKIP() << "stock gRPC 1.83 then closes every connection";
  }
  grpc::ResourceQuota quota("little memory");
  quota.Resize(256 * 1024);
  ServeWith(quota);
  CallFromManyThreads(channel(), 1 << 20);
  ExpectServes(channel());
  ExpectPath(*channel());
}

TEST_P(QuotaTest, ClientOfLittleMemoryIsServedOrRefused) {
  Serve(&service_);
  grpc::ResourceQuota quota("little memory");
  quota.Resize(256 * 1024);
  grpc::ChannelArguments arguments;
  arguments.SetResourceQuota(quota);
  auto small = NewChannel(arguments);
  CallFromManyThreads(small, 1 << 20);
  ExpectServes(small);
  ExpectPath(*small);
}

INSTANTIATE_TEST_SUITE_P(Over, QuotaTest, EachPath(), PathName());

}  // namespace
}  // namespace penstock::e2e
