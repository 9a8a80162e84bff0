// Tests callbacks that run on any thread.

#include <atomic>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tests/transport/rpc/rpc_fixture.h"
#include "transport/progress/poll_set.h"
#include "transport/rpc/waiter.h"

namespace penstock {
namespace rpc {
namespace {

class AnyThreadTest : public RpcFixture {
 protected:
  std::unique_ptr<Client> ConnectAny() {
    Client::Options options = ClientOptions();
    options.callbacks = CallbackThread::kAny;
    return Connect(options);
  }

  // Makes calls until a callback has run on this thread, which polls.
  static void CallUntilHere(Client* client) {
    const std::thread::id here = std::this_thread::get_id();
    std::atomic<bool> is_here{false};
    while (!is_here) {
      std::atomic<bool> is_done{false};
      client->Call(Named("echo"), [&](const Result& result) {
        EXPECT_TRUE(result.ok()) << result.status();
        if (std::this_thread::get_id() == here) is_here = true;
        is_done = true;
      });
      while (!is_done) progress::PollSet::Get()->PollAll();
    }
  }
};

TEST_P(AnyThreadTest, AThreadThatPollsGetsItsAnswer) {
  if (GetParam() != Fabric::kShm) GTEST_SKIP() << "tcp has nothing to poll";
  ServeEcho();
  std::unique_ptr<Client> client = ConnectAny();
  CallUntilHere(client.get());
}

TEST_P(AnyThreadTest, WaiterEndsWithTheAnswer) {
  ServeEcho();
  std::unique_ptr<Client> client = ConnectAny();
  Waiter waiter(progress::PollingMode::kAdaptive);
  EXPECT_FALSE(waiter.Wait(absl::ZeroDuration()));
  EXPECT_FALSE(waiter.Wait(absl::Milliseconds(1)));
  for (int i = 0; i < 100; ++i) {
    client->Call(Named("echo"), [&waiter](const Result&) { waiter.Notify(); });
    EXPECT_TRUE(waiter.Wait(absl::InfiniteDuration()));
  }
  EXPECT_FALSE(waiter.Wait(absl::ZeroDuration()));
}

// Tests that each token ends one wait, on any thread.
TEST(WaiterTest, EachTokenEndsOneWait) {
  constexpr int kThreads = 3;
  constexpr int kTokens = 3000;
  Waiter waiter(progress::PollingMode::kEvent);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&waiter] {
      for (int j = 0; j < kTokens / kThreads; ++j) {
        EXPECT_TRUE(waiter.Wait(absl::Seconds(20)));
      }
    });
  }
  for (int i = 0; i < kTokens; ++i) waiter.Notify();
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(waiter.Wait(absl::ZeroDuration()));
}

TEST_P(AnyThreadTest, CallbacksRunOneAfterAnother) {
  ServeEcho();
  std::unique_ptr<Client> client = ConnectAny();
  std::atomic<int> running{0};
  std::atomic<int> done{0};
  constexpr int kCalls = 500;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < kCalls; ++j) {
        const Client::CallId id =
            client->Call(Named("echo"), [&](const Result&) {
              EXPECT_EQ(running.fetch_add(1), 0);
              running.fetch_sub(1);
              done.fetch_add(1);
            });
        if (j % 7 == 0) client->Cancel(id);
        progress::PollSet::Get()->PollAll();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  while (done != 3 * kCalls) progress::PollSet::Get()->PollAll();
}

TEST_P(AnyThreadTest, ACallbackMayCallAndDestroyTheClient) {
  ServeEcho();
  std::unique_ptr<Client> client = ConnectAny();
  const Awaited<Result> second;
  client->Call(Named("first"), [&](const Result&) {
    client->Call(Named("second"), [&](Result result) {
      client = nullptr;
      second.Set(std::move(result));
    });
  });
  const absl::optional<Result> result = second.Get();
  ASSERT_TRUE(result.has_value());
  EXPECT_TRUE(result->ok()) << result->status();
}

TEST_P(AnyThreadTest, AProgramMayEnforceTimeoutsItself) {
  const Awaited<std::shared_ptr<IncomingCall>> incoming;
  Serve([incoming](std::shared_ptr<IncomingCall> call) {
    incoming.Set(std::move(call));
  });
  Client::Options options = ClientOptions();
  options.enforces_timeouts = false;
  std::unique_ptr<Client> client = Connect(options);
  Request request = Named("slow");
  request.timeout = absl::Microseconds(1);
  const Awaited<Result> result = Begin(client.get(), std::move(request));
  std::shared_ptr<IncomingCall> call = *incoming.Get();
  EXPECT_EQ(call->request().timeout, absl::Microseconds(1));
  call->Respond(Response{"late", {}});
  ASSERT_TRUE((*result.Get()).ok());
}

INSTANTIATE_TEST_SUITE_P(Fabrics, AnyThreadTest,
                         testing::Values(Fabric::kShm, Fabric::kTcp),
                         [](const auto& fabric) {
                           return fabric.param == Fabric::kShm ? "Shm" : "Tcp";
                         });

}  // namespace
}  // namespace rpc
}  // namespace penstock
