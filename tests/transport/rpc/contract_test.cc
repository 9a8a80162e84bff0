// Tests the promises of client.h and server.h about callbacks and about the
// memory that client and server keep.

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/transport/rpc/rpc_fixture.h"

namespace penstock {
namespace rpc {
namespace {

class ContractTest : public RpcFixture {
 protected:
  // Starts a server that keeps each call until the test releases the call.
  void ServeNothing() {
    Serve([incoming = incoming_](std::shared_ptr<IncomingCall> call) {
      incoming.Set(std::move(call));
    });
  }

  const Awaited<std::shared_ptr<IncomingCall>> incoming_;
};

// Tests that Cancel() does not report within its call: a thread that cancels
// may hold a lock that the call's `done` takes.
TEST_P(ContractTest, CancelInACallbackReportsLater) {
  ServeNothing();
  std::unique_ptr<Client> client = Connect();
  std::atomic<bool> cancelling{false};
  const Awaited<bool> reported;
  const Client::CallId id = client->Call(
      Named("any"),
      [&cancelling, reported](const Result&) { reported.Set(cancelling); });
  const auto call = incoming_.Get();
  ASSERT_TRUE(call.has_value());
  client->Call(Named(""), [&client, &cancelling, id](const Result&) {
    cancelling = true;
    client->Cancel(id);
    cancelling = false;
  });
  EXPECT_EQ(reported.Get(), absl::make_optional(false));
}

TEST_P(ContractTest, AnswerInACallbackReportsLater) {
  ServeNothing();
  std::unique_ptr<Client> client = Connect();
  const Awaited<Result> result = Begin(client.get(), Named("any"));
  std::shared_ptr<IncomingCall> call = *incoming_.Get();
  std::atomic<bool> waiting{false};
  const Awaited<bool> reported;
  // Ends the session before OnCancel() is called. OnCancel() must then report
  // the end.
  server_ = nullptr;
  ASSERT_TRUE(result.Get().has_value());
  client->Call(Named(""), [&waiting, call, reported](const Result&) {
    waiting = true;
    call->OnCancel([&waiting, reported] { reported.Set(waiting); });
    waiting = false;
  });
  EXPECT_EQ(reported.Get(), absl::make_optional(false));
}

TEST_P(ContractTest, ClosedIsNotCalledAfterTheDestructor) {
  ServeNothing();
  std::unique_ptr<Client> client = Connect();
  const Awaited<bool> told;
  const Awaited<bool> destroyed;
  client->Call(Named("any"), [told, destroyed](const Result&) {
    told.Set(true);
    destroyed.Get();
  });
  const auto call = incoming_.Get();
  ASSERT_TRUE(call.has_value());
  std::thread server([this] { server_ = nullptr; });
  ASSERT_TRUE(told.Get().has_value());
  client = nullptr;
  destroyed.Set(true);
  server.join();
  // Waits until all callbacks that are due have run.
  const Awaited<Result> last;
  ServeEcho();
  EXPECT_TRUE(Call(Connect().get(), Named("any")).ok());
  EXPECT_EQ(closed_.count(), 0);
}

TEST_P(ContractTest, ClosedComesAfterTheCalls) {
  for (int i = 0; i < 20; ++i) {
    ServeNothing();
    auto told = std::make_shared<std::atomic<int>>(0);
    const Awaited<int> closed;
    absl::StatusOr<std::unique_ptr<Client>> client = Client::Connect(
        ClientOptions(),
        [told, closed](const absl::Status&) { closed.Set(told->load()); });
    ASSERT_TRUE(client.ok());
    constexpr int kCalls = 50;
    std::vector<Client::CallId> calls;
    for (int j = 0; j < kCalls; ++j) {
      calls.push_back(
          (*client)->Call(Named("any"), [told](const Result&) { ++*told; }));
    }
    const auto call = incoming_.Get();
    ASSERT_TRUE(call.has_value());
    std::thread canceller([&client, &calls] {
      for (Client::CallId id : calls) (*client)->Cancel(id);
    });
    server_ = nullptr;
    EXPECT_EQ(closed.Get(), absl::make_optional(kCalls));
    canceller.join();
  }
}

TEST_P(ContractTest, CallbacksMayDestroyTheClient) {
  ServeEcho();
  const Awaited<bool> destroyed;
  auto client = std::make_shared<std::unique_ptr<Client>>(Connect());
  (*client)->Call(Named("any"), [client, destroyed](const Result&) {
    *client = nullptr;
    destroyed.Set(true);
  });
  EXPECT_TRUE(destroyed.Get().has_value());

  auto other = std::make_shared<std::unique_ptr<Client>>();
  const Awaited<bool> made;
  *other = *Client::Connect(ClientOptions(),
                            [other, made, destroyed](const absl::Status&) {
                              made.Get();
                              *other = nullptr;
                              destroyed.Set(true);
                            });
  made.Set(true);
  server_ = nullptr;
  EXPECT_TRUE(destroyed.Get().has_value());
}

TEST_P(ContractTest, ConnectMayTakeForEver) {
  ServeEcho();
  Client::Options options = ClientOptions();
  options.connect_timeout = absl::InfiniteDuration();
  std::unique_ptr<Client> client = Connect(options);
  Request request = Named("any");
  request.timeout = absl::Seconds(INT64_MAX);
  EXPECT_TRUE(Call(client.get(), std::move(request)).ok());
}

INSTANTIATE_TEST_SUITE_P(All, ContractTest,
                         testing::Values(Fabric::kShm, Fabric::kTcp),
                         [](const auto& info) {
                           return FabricName(info.param);
                         });

}  // namespace
}  // namespace rpc
}  // namespace penstock
