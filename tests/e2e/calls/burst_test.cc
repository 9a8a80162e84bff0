// Tests streams of short messages that are sent as fast as possible, and large
// messages among them.

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "grpcpp/support/sync_stream.h"
#include "gtest/gtest.h"
#include "tests/e2e/stack_test.h"

namespace penstock::e2e {
namespace {

using Requests = grpc::ServerReader<StreamingInputCallRequest>;

// Counts the messages, whose contents must be their numbers.
class CountingService : public TestService::Service {
 public:
  grpc::Status StreamingInputCall(
      grpc::ServerContext*, Requests* requests,
      StreamingInputCallResponse* response) override {
    StreamingInputCallRequest request;
    int bytes = 0;
    while (requests->Read(&request)) {
      const std::string& body = request.payload().body();
      if (!absl::StartsWith(body, absl::StrCat(received(), "."))) {
        return {grpc::StatusCode::DATA_LOSS, "out of order"};
      }
      bytes += static_cast<int>(body.size());
      absl::MutexLock lock(&mu_);
      ++received_;
    }
    response->set_aggregated_payload_size(bytes);
    return grpc::Status::OK;
  }
  int received() const {
    absl::MutexLock lock(&mu_);
    return received_;
  }
  // Waits until `count` messages have arrived. Returns false after 20 s.
  bool Await(int count) const {
    absl::MutexLock lock(&mu_);
    const auto has_all = [&] { return received_ >= count; };
    return mu_.AwaitWithTimeout(absl::Condition(&has_all), absl::Seconds(20));
  }

 private:
  mutable absl::Mutex mu_;
  int received_ = 0;
};

class BurstTest : public StackTest {
 protected:
  void SetUp() override {
    Serve(&service_);
    stub_ = TestService::NewStub(channel());
    stream_ = stub_->StreamingInputCall(&call_, &response_);
  }
  ~BurstTest() override { StopServing(std::chrono::milliseconds(0)); }

  // Sends messages as fast as possible, each with about `bytes` bytes.
  void Send(int count, size_t bytes = 1) {
    for (int i = 0; i < count; ++i) {
      std::string body = absl::StrCat(sent_++, ".");
      if (body.size() < bytes) body.resize(bytes, 'x');
      sent_bytes_ += static_cast<int>(body.size());
      StreamingInputCallRequest request;
      request.mutable_payload()->set_body(std::move(body));
      ASSERT_TRUE(stream_->Write(request));
    }
  }
  void ExpectEndsWell() {
    EXPECT_TRUE(stream_->WritesDone());
    const grpc::Status status = stream_->Finish();
    EXPECT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(response_.aggregated_payload_size(), sent_bytes_);
    EXPECT_EQ(service_.received(), sent_);
  }

  CountingService service_;
  std::unique_ptr<TestService::Stub> stub_;
  Call call_;
  StreamingInputCallResponse response_;
  std::unique_ptr<grpc::ClientWriter<StreamingInputCallRequest>> stream_;
  int sent_ = 0;
  int sent_bytes_ = 0;
};

// Tests a program that computes, or waits elsewhere, after its last message.
TEST_P(BurstTest, LastMessagesArriveWithoutAWaitInGrpc) {
  for (int burst = 0; burst < 20; ++burst) {
    Send(100 + burst);
    ASSERT_TRUE(service_.Await(sent_))
        << service_.received() << " of " << sent_;
  }
  ExpectEndsWell();
}

TEST_P(BurstTest, ManyMessagesStayInOrder) {
  Send(20 * 1000);
  Send(5, 1 << 20);
  Send(2000, 1000);
  Send(5, 20 * 1000);
  Send(2000);
  ExpectEndsWell();
}

INSTANTIATE_TEST_SUITE_P(Paths, BurstTest, EachPath(), PathName());

}  // namespace
}  // namespace penstock::e2e
