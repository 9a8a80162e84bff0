// Tests that error counters stay unchanged while clients and servers start,
// work and end normally.

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "penstock/metrics.h"
#include "penstock/penstock.h"
#include "tests/e2e/stack_test.h"
#include "tests/transport/metrics/moved_counters.h"

namespace penstock::e2e {
namespace {

class QuietCountersTest : public ServiceTest {
 protected:
  // Waits until both sides of all sessions have ended. Both sides are in this
  // process. The second side learns of the end slightly later.
  static void AwaitEndOfSessions() {
    const auto limit = In(kPatience);
    while (metrics::OpenSessions(MetricsText()) > 0) {
      ASSERT_LT(std::chrono::system_clock::now(), limit) << MetricsText();
      std::this_thread::yield();
    }
  }

  static void MakeCalls(TestService::Stub* stub) {
    for (const size_t bytes : {1, 1000, 100000}) {
      Call call;
      SimpleRequest request;
      request.set_response_size(static_cast<int>(bytes));
      *request.mutable_payload() = ZeroPayload(bytes);
      SimpleResponse response;
      ASSERT_TRUE(stub->UnaryCall(&call, request, &response).ok());
    }
    Call call;
    auto stream = stub->FullDuplexCall(&call);
    ASSERT_TRUE(PingPong(stream.get(), 1000));
    ASSERT_TRUE(stream->WritesDone());
    ASSERT_TRUE(stream->Finish().ok());
  }

  const std::string before_ = MetricsText();
};

TEST_P(QuietCountersTest, ClientsThatEnd) {
  for (int i = 0; i < 12; ++i) {
    auto channel = NewChannel();
    auto stub = TestService::NewStub(channel);
    MakeCalls(stub.get());
    ExpectPath(*channel);
  }
  AwaitEndOfSessions();
  EXPECT_THAT(metrics::MovedWithoutCause(before_, MetricsText()),
              testing::IsEmpty());
}

TEST_P(QuietCountersTest, ServersThatEnd) {
  for (int i = 0; i < 6; ++i) {
    auto channel = NewChannel();
    auto stub = TestService::NewStub(channel);
    MakeCalls(stub.get());
    StopServing(kPatience);
    AwaitEndOfSessions();
    stub = nullptr;
    channel = nullptr;
    Serve(&service_);
  }
  EXPECT_THAT(metrics::MovedWithoutCause(before_, MetricsText()),
              testing::IsEmpty());
}

TEST_P(QuietCountersTest, IdleConnection) {
  MakeCalls(stub_.get());
  const std::string idle = MetricsText();
  for (int i = 0; i < 20; ++i) (void)DescribePaths(*channel());
  EXPECT_THAT(metrics::MovedCounters(idle, MetricsText()), testing::IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Over, QuietCountersTest, EachPath(), PathName());

}  // namespace
}  // namespace penstock::e2e
