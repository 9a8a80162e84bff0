#include "tensor_service/rendezvous_service.h"

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"
#include "tensor_service/rendezvous_client.h"
#include "tensor_service/status.h"

namespace penstock::tensor {
namespace {

using Received = Rendezvous::Received;
using Result = absl::StatusOr<Received>;

RendezvousKey Key(uint64_t step, const std::string& name) {
  return {step, name, "a", "b"};
}

Tensor Floats(const std::vector<float>& values) {
  return *Tensor::Of<float>({static_cast<int64_t>(values.size())}, values);
}

class RendezvousServiceTest : public testing::Test {
 protected:
  RendezvousServiceTest() { Start({}); }
  ~RendezvousServiceTest() override { Stop(); }

  void Start(const Rendezvous::Options& options) {
    Stop();
    table_ = std::make_unique<Rendezvous>(options);
    service_ = MakeRendezvousService(table_.get());
    grpc::ServerBuilder builder;
    AllowUnlimitedMessages(&builder);
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                             &port_);
    builder.RegisterService(service_.get());
    server_ = builder.BuildAndStart();
  }

  void Stop() {
    if (server_ == nullptr) return;
    table_->CancelAll(absl::UnavailableError("the test ends")).IgnoreError();
    server_->Shutdown();
    server_->Wait();
    server_ = nullptr;
  }

  // Makes separate channels, like separate processes.
  std::shared_ptr<grpc::Channel> Channel() const {
    grpc::ChannelArguments arguments = UnlimitedMessages();
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel(absl::StrCat("127.0.0.1:", port_),
                                     grpc::InsecureChannelCredentials(),
                                     arguments);
  }

  RendezvousClient Client(
      absl::Duration timeout = absl::InfiniteDuration()) const {
    return RendezvousClient(Channel(), timeout);
  }

  // Starts a receive, and returns once it waits at the service.
  std::future<Result> Waiting(RendezvousClient* client,
                              const RendezvousKey& key) {
    auto promise = std::make_shared<std::promise<Result>>();
    const size_t before = table_->usage().waiters;
    pending_.push_back(client->Receive(
        key, [promise](Result got) { promise->set_value(std::move(got)); }));
    AwaitWaiters(before + 1);
    return promise->get_future();
  }

  void AwaitWaiters(size_t count) const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (table_->usage().waiters != count) {
      ASSERT_LT(std::chrono::steady_clock::now(), end);
      std::this_thread::yield();
    }
  }

  std::unique_ptr<Rendezvous> table_;
  std::unique_ptr<grpc::Service> service_;
  std::unique_ptr<grpc::Server> server_;
  std::vector<PendingReceive> pending_;
  int port_ = 0;
};

TEST_F(RendezvousServiceTest, ReceiveMayComeFirst) {
  RendezvousClient receiver = Client();
  RendezvousClient sender = Client();
  std::future<Result> got = Waiting(&receiver, Key(1, "x"));
  ASSERT_TRUE(sender.Send(Key(1, "x"), Floats({1, 2})).ok());
  const Result result = got.get();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->tensor.bytes(), Floats({1, 2}).bytes());
}

TEST_F(RendezvousServiceTest, SendMayComeFirst) {
  RendezvousClient client = Client();
  Rendezvous::SendOptions dead;
  dead.is_dead = true;
  ASSERT_TRUE(client.Send(Key(1, "x"), Floats({3}), dead).ok());
  const Result got = client.Receive(Key(1, "x"));
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_TRUE(got->is_dead);
  EXPECT_EQ(got->tensor.bytes(), Floats({3}).bytes());
}

TEST_F(RendezvousServiceTest, BroadcastReachesAll) {
  RendezvousClient client = Client();
  std::vector<std::future<Result>> all;
  all.reserve(3);
  for (int i = 0; i < 3; ++i) all.push_back(Waiting(&client, Key(1, "x")));
  Rendezvous::SendOptions four;
  four.receivers = 4;
  ASSERT_TRUE(client.Send(Key(1, "x"), Floats({5}), four).ok());
  for (auto& got : all)
    EXPECT_EQ(got.get()->tensor.bytes(), Floats({5}).bytes());
  EXPECT_TRUE(client.Receive(Key(1, "x")).ok());
  EXPECT_EQ(table_->usage().tensors, 0u);
}

TEST_F(RendezvousServiceTest, TwoExchangeInOneCallEach) {
  RendezvousClient one = Client();
  RendezvousClient two = Client();
  Result got_by_two;
  std::thread other([&] {
    got_by_two = two.Exchange(Key(1, "y"), Floats({2}), {}, Key(1, "x"));
  });
  const Result got = one.Exchange(Key(1, "x"), Floats({1}), {}, Key(1, "y"));
  other.join();
  ASSERT_TRUE(got.ok()) << got.status();
  ASSERT_TRUE(got_by_two.ok()) << got_by_two.status();
  EXPECT_EQ(got->tensor.bytes(), Floats({2}).bytes());
  EXPECT_EQ(got_by_two->tensor.bytes(), Floats({1}).bytes());
}

TEST_F(RendezvousServiceTest, LargeTensorComesWhole) {
  RendezvousClient client = Client();
  std::future<Result> got = Waiting(&client, Key(1, "x"));
  const Tensor large = Floats(std::vector<float>(5 << 20, 1.5F));
  ASSERT_TRUE(client.Send(Key(1, "x"), large).ok());
  EXPECT_EQ(got.get()->tensor.bytes(), large.bytes());
}

TEST_F(RendezvousServiceTest, CancelledStepWakesAllWithItsReason) {
  RendezvousClient client = Client();
  std::vector<std::future<Result>> all;
  for (const char* name : {"x", "y"}) {
    all.push_back(Waiting(&client, Key(7, name)));
  }
  std::future<Result> other = Waiting(&client, Key(8, "x"));
  ASSERT_TRUE(client.CancelStep(7, absl::DataLossError("disk full")).ok());
  for (auto& got : all) {
    const absl::Status status = got.get().status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    EXPECT_TRUE(absl::StrContains(status.message(), "disk full")) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), "step 7")) << status;
  }
  EXPECT_EQ(client.Send(Key(7, "x"), Floats({1})).code(),
            absl::StatusCode::kDataLoss);
  ASSERT_TRUE(client.FinishStep(8).ok());
  EXPECT_EQ(other.get().status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(RendezvousServiceTest, CancelTakesErrorsOnly) {
  RendezvousClient client = Client();
  EXPECT_EQ(client.CancelStep(1, absl::OkStatus()).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(client.CancelStep(1, absl::AbortedError("\xff")).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(client.Send(Key(1, "x"), Floats({1})).ok());
}

// Tests the longest names and reason, which fit into gRPC's metadata.
TEST_F(RendezvousServiceTest, LongestStatusComesThrough) {
  RendezvousClient client = Client();
  const RendezvousKey longest = {
      1, std::string(RendezvousKey::kMaxNameBytes, '\x01'), "", ""};
  ASSERT_TRUE(client.Send(Key(1, "x"), Floats({1})).ok());
  ASSERT_TRUE(
      client.CancelStep(1, absl::AbortedError(std::string(5000, '\x02'))).ok());
  const absl::Status status = client.Receive(longest).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
  EXPECT_TRUE(absl::EndsWith(status.message(), std::string(100, '\x02')));
}

TEST_F(RendezvousServiceTest, DeadlineEndsTheWaitAtTheServiceToo) {
  RendezvousClient client = Client(absl::Milliseconds(20));
  const absl::Status status = client.Receive(Key(1, "x")).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(absl::StrContains(status.message(), "tensor x from a to b"))
      << status;
  AwaitWaiters(0);
  // Expects that the cancelled receive takes no tensor.
  ASSERT_TRUE(Client().Send(Key(1, "x"), Floats({1})).ok());
  EXPECT_TRUE(Client().Receive(Key(1, "x")).ok());
}

TEST_F(RendezvousServiceTest, ReceiverThatCancelsLeavesTheTensorForTheNext) {
  RendezvousClient client = Client();
  std::future<Result> got = Waiting(&client, Key(1, "x"));
  pending_.back().Cancel();
  EXPECT_EQ(got.get().status().code(), absl::StatusCode::kCancelled);
  AwaitWaiters(0);
  ASSERT_TRUE(client.Send(Key(1, "x"), Floats({1})).ok());
  EXPECT_TRUE(client.Receive(Key(1, "x")).ok());
}

TEST_F(RendezvousServiceTest, CallbackGetsTheErrorOfABadKeyAtOnce) {
  RendezvousClient client = Client();
  absl::Status status;
  PendingReceive pending = client.Receive(
      RendezvousKey(), [&status](const Result& got) { status = got.status(); });
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  pending.Cancel();
}

TEST_F(RendezvousServiceTest, ShutdownGivesItsReasonToAllThatWait) {
  RendezvousClient client = Client();
  std::future<Result> got = Waiting(&client, Key(1, "x"));
  ASSERT_TRUE(table_->CancelAll(absl::UnavailableError("going down")).ok());
  server_->Shutdown();
  const absl::Status status = got.get().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(absl::StrContains(status.message(), "going down")) << status;
}

TEST_F(RendezvousServiceTest, ShutdownWithoutCancelEndsByItsDeadline) {
  RendezvousClient client = Client();
  std::future<Result> got = Waiting(&client, Key(1, "x"));
  server_->Shutdown(std::chrono::system_clock::now());
  EXPECT_FALSE(got.get().ok());
  AwaitWaiters(0);
}

TEST_F(RendezvousServiceTest, PeerCannotOpenMoreWaitsThanAllowed) {
  Rendezvous::Options options;
  options.max_waiters = 2;
  options.client_share = 1;
  Start(options);
  RendezvousClient client = Client();
  std::future<Result> first = Waiting(&client, Key(1, "x"));
  std::future<Result> second = Waiting(&client, Key(1, "y"));
  EXPECT_EQ(client.Receive(Key(1, "z")).status().code(),
            absl::StatusCode::kResourceExhausted);
  ASSERT_TRUE(client.Send(Key(1, "x"), Floats({1})).ok());
  EXPECT_TRUE(first.get().ok());
  std::future<Result> third = Waiting(&client, Key(1, "z"));
  table_->FinishStep(1);
  EXPECT_FALSE(second.get().ok());
  EXPECT_FALSE(third.get().ok());
}

TEST_F(RendezvousServiceTest, ThousandReceivesWaitWithoutAThreadEach) {
  RendezvousClient client = Client();
  std::vector<std::promise<Result>> results(1000);
  std::vector<PendingReceive> pending;
  pending.reserve(results.size());
  for (size_t i = 0; i < results.size(); ++i) {
    pending.push_back(client.Receive(
        Key(1, absl::StrCat(i)),
        [&results, i](Result got) { results[i].set_value(std::move(got)); }));
  }
  AwaitWaiters(results.size());
  for (size_t i = 0; i < results.size(); ++i) {
    ASSERT_TRUE(
        client.Send(Key(1, absl::StrCat(i)), Floats({static_cast<float>(i)}))
            .ok());
  }
  for (size_t i = 0; i < results.size(); ++i) {
    const Result got = results[i].get_future().get();
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_EQ((*got->tensor.Aligned()->flat<float>())[0],
              static_cast<float>(i));
  }
}

}  // namespace
}  // namespace penstock::tensor
