// Tests calls and connections that end early.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/transport/metrics/moved_counters.h"
#include "tests/transport/rpc/rpc_fixture.h"
#include "transport/base/unique_fd.h"
#include "transport/monitoring/exposition.h"

namespace penstock {
namespace rpc {
namespace {

using testing::HasSubstr;

using EndsTest = RpcFixture;

TEST_P(EndsTest, CallThatIsLetGoOfIsAnswered) {
  Serve([](const std::shared_ptr<IncomingCall>&) {});
  std::unique_ptr<Client> client = Connect();
  EXPECT_EQ(Call(client.get(), Named("any")).status().code(),
            absl::StatusCode::kInternal);
}

TEST_P(EndsTest, CancelTellsTheHandler) {
  const Awaited<std::shared_ptr<IncomingCall>> incoming;
  Serve([incoming](std::shared_ptr<IncomingCall> call) {
    incoming.Set(std::move(call));
  });
  std::unique_ptr<Client> client = Connect();
  const Awaited<Result> result;
  const Client::CallId id = client->Call(
      Named("any"), [result](Result answer) { result.Set(std::move(answer)); });
  std::shared_ptr<IncomingCall> call = *incoming.Get();
  const Awaited<bool> cancelled;
  call->OnCancel([cancelled] { cancelled.Set(true); });
  client->Cancel(id);
  EXPECT_EQ(result.Get()->status().code(), absl::StatusCode::kCancelled);
  EXPECT_TRUE(cancelled.Get().has_value());
  call->Respond(Response());  // has no effect
  client->Cancel(id);
  EXPECT_EQ(result.count(), 1);
  EXPECT_EQ(cancelled.count(), 1);
}

// Tests a handler that answers its call, and then frees the objects that its
// pending callback would use.
TEST_P(EndsTest, AnswerForgetsACancellationThatWaits) {
  const Awaited<std::shared_ptr<IncomingCall>> incoming;
  const Awaited<std::shared_ptr<IncomingCall>> cancelled;
  const Awaited<bool> late;
  Serve([=](std::shared_ptr<IncomingCall> call) {
    if (call->request().method == "first") return incoming.Set(std::move(call));
    if (call->request().method == "second") {
      // Occupies the thread of the callbacks. Callbacks run one after another,
      // so the new one has to wait.
      const std::shared_ptr<IncomingCall> first = *cancelled.Get();
      first->OnCancel([late] { late.Set(true); });
      first->Respond(Response());
    }
    call->Respond(Response());
  });
  std::unique_ptr<Client> client = Connect();
  const Client::CallId id = client->Call(Named("first"), [](const Result&) {});
  const std::shared_ptr<IncomingCall> first = *incoming.Get();
  const Awaited<bool> told;
  first->OnCancel([told] { told.Set(true); });
  client->Cancel(id);
  ASSERT_TRUE(told.Get().has_value());
  cancelled.Set(first);
  EXPECT_TRUE(Call(client.get(), Named("second")).ok());
  EXPECT_TRUE(Call(client.get(), Named("third")).ok());
  EXPECT_EQ(late.count(), 0);
}

TEST_P(EndsTest, CancelThatCameBeforeIsToldOf) {
  const Awaited<std::shared_ptr<IncomingCall>> incoming;
  Serve([incoming](std::shared_ptr<IncomingCall> call) {
    incoming.Set(std::move(call));
  });
  std::unique_ptr<Client> client = Connect();
  Begin(client.get(), Named("any"));
  std::shared_ptr<IncomingCall> call = *incoming.Get();
  client = nullptr;
  const Awaited<bool> cancelled;
  // Sets the callback, before or after the server learns of the end.
  call->OnCancel([cancelled] { cancelled.Set(true); });
  EXPECT_TRUE(cancelled.Get().has_value());
}

TEST_P(EndsTest, DeadlineEndsTheCall) {
  const Awaited<std::shared_ptr<IncomingCall>> incoming;
  Serve([incoming](std::shared_ptr<IncomingCall> call) {
    incoming.Set(std::move(call));
  });
  std::unique_ptr<Client> client = Connect();
  Request request = Named("any");
  request.timeout = absl::Milliseconds(200);
  EXPECT_EQ(Call(client.get(), std::move(request)).status().code(),
            absl::StatusCode::kDeadlineExceeded);
  const Awaited<bool> cancelled;
  std::shared_ptr<IncomingCall> call = *incoming.Get();
  EXPECT_EQ(call->request().timeout, absl::Milliseconds(200));
  call->OnCancel([cancelled] { cancelled.Set(true); });
  EXPECT_TRUE(cancelled.Get().has_value());
}

TEST_P(EndsTest, ServersEndIsUnavailable) {
  const Awaited<std::shared_ptr<IncomingCall>> incoming;
  Serve([incoming](std::shared_ptr<IncomingCall> call) {
    incoming.Set(std::move(call));
  });
  std::unique_ptr<Client> client = Connect();
  const Awaited<Result> result = Begin(client.get(), Named("any"));
  std::shared_ptr<IncomingCall> call = *incoming.Get();
  server_ = nullptr;
  EXPECT_EQ(result.Get()->status().code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(closed_.Get().has_value());
  EXPECT_EQ(Call(client.get(), Named("later")).status().code(),
            absl::StatusCode::kUnavailable);
  call->Respond(Response());  // has no effect
}

TEST_P(EndsTest, WrongTokenIsRefused) {
  ServeEcho();
  Client::Options options = ClientOptions();
  options.token = "another";
  std::unique_ptr<Client> client = Connect(options);
  const absl::Status status = Call(client.get(), Named("any")).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("token"));
  EXPECT_TRUE(closed_.Get().has_value());
}

TEST_P(EndsTest, NobodyThereIsUnavailable) {
  ServeEcho();
  const Client::Options options = ClientOptions();
  server_ = nullptr;
  std::unique_ptr<Client> client = Connect(options);
  const absl::Status status = Call(client.get(), Named("any")).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr(options.target));
}

TEST_P(EndsTest, ServerThatDoesNotAnswerIsUnavailable) {
  ServeEcho();
  const base::UniqueFd mute(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(bind(mute.get(), generic, length), 0);
  ASSERT_EQ(listen(mute.get(), 1), 0);
  ASSERT_EQ(getsockname(mute.get(), generic, &length), 0);
  Client::Options options = ClientOptions();
  options.target = absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
  options.connect_timeout = absl::Milliseconds(100);
  std::unique_ptr<Client> client = Connect(options);
  EXPECT_EQ(Call(client.get(), Named("any")).status().code(),
            absl::StatusCode::kUnavailable);
}

TEST_P(EndsTest, ForkedChildMayDestroyBoth) {
  ServeEcho();
  std::unique_ptr<Client> client = Connect();
  ASSERT_TRUE(Call(client.get(), Named("any")).ok());
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(10);  // ends the child
    client = nullptr;
    server_ = nullptr;
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_TRUE(Call(client.get(), Named("the parent's")).ok());
}

// Waits until all sessions of this process have ended. The second side learns
// of an end a moment after the first side.
void AwaitEndOfSessions() {
  const absl::Time limit = absl::Now() + absl::Seconds(20);
  while (metrics::OpenSessions(monitoring::MetricsAsText()) > 0) {
    ASSERT_LT(absl::Now(), limit) << monitoring::MetricsAsText();
    absl::SleepFor(absl::Milliseconds(1));
  }
}

TEST_P(EndsTest, EndInOrderMovesNoCounterOfTrouble) {
  AwaitEndOfSessions();  // the sessions of other tests
  const std::string before = monitoring::MetricsAsText();
  for (int i = 0; i < 4; ++i) {
    ServeEcho();
    for (int j = 0; j < 3; ++j) {
      std::unique_ptr<Client> client = Connect();
      Request request = Named("any");
      request.payload = Text(std::string(100000, 'x'));
      ASSERT_TRUE(Call(client.get(), std::move(request)).ok());
    }
    std::unique_ptr<Client> last = Connect();
    ASSERT_TRUE(Call(last.get(), Named("any")).ok());
    server_ = nullptr;
    AwaitEndOfSessions();
  }
  EXPECT_THAT(metrics::MovedWithoutCause(before, monitoring::MetricsAsText()),
              testing::IsEmpty());
}

TEST_P(EndsTest, ClientThatGoesWhileItConnectsReportsItsCalls) {
  ServeEcho();
  for (int i = 0; i < 50; ++i) {
    std::unique_ptr<Client> client = Connect();
    const Awaited<Result> result = Begin(client.get(), Named("any"));
    if (i % 2 == 1) std::this_thread::sleep_for(std::chrono::microseconds(i));
    client = nullptr;
    EXPECT_TRUE(result.Get().has_value());
  }
}

TEST_P(EndsTest, TooLargeRequestIsRefused) {
  Server::Options options;
  options.address = "127.0.0.1:0";
  options.token = kToken;
  options.settings = MakeSettings();
  options.max_receive_bytes = 1 << 20;
  server_ =
      *Server::Start(options, [](const std::shared_ptr<IncomingCall>& call) {
        call->Respond(Response());
      });
  std::unique_ptr<Client> client = Connect();
  Request request = Named("any");
  request.payload = Text(std::string((1 << 20) + 1, 'x'));
  EXPECT_EQ(Call(client.get(), std::move(request)).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(Call(client.get(), Named("the next")).ok());
}

TEST_P(EndsTest, TooLargeAnswerIsRefused) {
  ServeEcho();
  Client::Options options = ClientOptions();
  options.max_receive_bytes = 1 << 20;
  std::unique_ptr<Client> client = Connect(options);
  Request request = Named("any");
  request.payload = Text(std::string((1 << 20) + 1, 'x'));
  EXPECT_EQ(Call(client.get(), std::move(request)).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(Call(client.get(), Named("the next")).ok());
}

TEST_P(EndsTest, RequiredFabricThatCannotBeHadIsNamed) {
  Server::Options options;
  options.address = "127.0.0.1:0";
  options.token = kToken;
  options.settings = With({Fabric::kTcp});
  server_ =
      *Server::Start(options, [](const std::shared_ptr<IncomingCall>& call) {
        call->Respond(Response());
      });
  Client::Options client_options = ClientOptions();
  client_options.settings = With({Fabric::kShm});
  client_options.settings.policy = Policy::kRequire;
  std::unique_ptr<Client> client = Connect(client_options);
  const absl::Status status = Call(client.get(), Named("any")).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("policy"));
}

INSTANTIATE_TEST_SUITE_P(All, EndsTest,
                         testing::Values(Fabric::kShm, Fabric::kTcp),
                         [](const auto& info) {
                           return FabricName(info.param);
                         });

TEST(RpcOptions, BadOnesAreErrors) {
  Server::Options options;
  EXPECT_TRUE(absl::IsInvalidArgument(
      Server::Start(options, nullptr).status()));  // no token
  options.token = "token";
  options.address = "no address";
  EXPECT_TRUE(
      absl::IsInvalidArgument(Server::Start(options, nullptr).status()));
  Client::Options client;
  client.target = "nowhere";
  EXPECT_TRUE(
      absl::IsInvalidArgument(Client::Connect(client, nullptr).status()));
}

}  // namespace
}  // namespace rpc
}  // namespace penstock
