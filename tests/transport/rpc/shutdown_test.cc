// Tests servers that let open calls end.

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "gtest/gtest.h"
#include "tests/transport/rpc/rpc_fixture.h"

namespace penstock {
namespace rpc {
namespace {

class ShutdownTest : public RpcFixture {
 protected:
  Awaited<bool> Shutdown(absl::Duration grace) {
    const Awaited<bool> stopped;
    server_->Shutdown(grace, [stopped] { stopped.Set(true); });
    return stopped;
  }
  // Starts a server that gives each call to the test.
  void ServeNothing() {
    Serve([incoming = incoming_](std::shared_ptr<IncomingCall> call) {
      incoming.Set(std::move(call));
    });
  }

  const Awaited<std::shared_ptr<IncomingCall>> incoming_;
};

TEST_P(ShutdownTest, OpenCallsEndAsUsual) {
  ServeNothing();
  const std::unique_ptr<Client> client = Connect();
  const Awaited<Result> open = Begin(client.get(), Named("open"));
  const std::shared_ptr<IncomingCall> call = *incoming_.Get();
  const Awaited<bool> stopped = Shutdown(absl::InfiniteDuration());
  while (!client->is_over()) std::this_thread::yield();
  EXPECT_TRUE(absl::IsUnavailable(Call(client.get(), Named("new")).status()));
  EXPECT_EQ(stopped.count(), 0);
  EXPECT_EQ(closed_.count(), 0);
  // Answers with a large message, which the client has to read from the server.
  call->Respond(Response{"", Text(std::string(3000000, 'x'))});
  const Result result = *open.Get();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->payload.size(), 3000000);
  EXPECT_TRUE(stopped.Get().has_value());
  EXPECT_TRUE(closed_.Get().has_value());
  EXPECT_EQ(incoming_.count(), 1);
}

TEST_P(ShutdownTest, GraceEndsTheCalls) {
  ServeNothing();
  const std::unique_ptr<Client> client = Connect();
  const Awaited<Result> open = Begin(client.get(), Named("open"));
  const std::shared_ptr<IncomingCall> call = *incoming_.Get();
  const Awaited<bool> cancelled;
  call->OnCancel([cancelled] { cancelled.Set(true); });
  const Awaited<bool> patient = Shutdown(absl::InfiniteDuration());
  const Awaited<bool> stopped = Shutdown(absl::Milliseconds(10));
  EXPECT_TRUE(absl::IsUnavailable(open.Get()->status()));
  EXPECT_TRUE(cancelled.Get().has_value());
  EXPECT_TRUE(stopped.Get().has_value());
  EXPECT_TRUE(patient.Get().has_value());
}

TEST_P(ShutdownTest, NothingBeginsAfterwards) {
  ServeEcho();
  const Client::Options options = ClientOptions();
  EXPECT_TRUE(Shutdown(absl::InfiniteDuration()).Get().has_value());
  const std::unique_ptr<Client> client = Connect(options);
  EXPECT_TRUE(absl::IsUnavailable(Call(client.get(), Named("any")).status()));
}

// Tests that each call either gets its answer, or has reached no handler.
TEST_P(ShutdownTest, NoCallIsLost) {
  std::atomic<int> handled{0};
  Serve([&handled](const std::shared_ptr<IncomingCall>& call) {
    ++handled;
    call->Respond(Response());
  });
  const std::unique_ptr<Client> client = Connect();
  ASSERT_TRUE(Call(client.get(), Named("first")).ok());
  int answered = 1;
  std::thread caller([&client, &answered] {
    for (;;) {
      const Awaited<Result> one = Begin(client.get(), Named("one"));
      const Awaited<Result> two = Begin(client.get(), Named("two"));
      const bool is_one = one.Get()->ok();
      const bool is_two = two.Get()->ok();
      answered += static_cast<int>(is_one) + static_cast<int>(is_two);
      if (!is_one || !is_two) return;
    }
  });
  const Awaited<bool> stopped = Shutdown(absl::InfiniteDuration());
  caller.join();
  EXPECT_TRUE(stopped.Get().has_value());
  EXPECT_EQ(answered, handled);
}

INSTANTIATE_TEST_SUITE_P(All, ShutdownTest,
                         testing::Values(Fabric::kShm, Fabric::kTcp),
                         [](const auto& info) {
                           return FabricName(info.param);
                         });

}  // namespace
}  // namespace rpc
}  // namespace penstock
