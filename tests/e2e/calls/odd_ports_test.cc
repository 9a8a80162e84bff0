// Tests channels to ports without a gRPC server. A channel with Penstock must
// behave like a stock channel.

#include <chrono>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "penstock/penstock.h"
#include "tests/e2e/call.h"
#include "tests/e2e/calls/odd_port.h"
#include "tests/e2e/stack_test.h"

namespace penstock::e2e {
namespace {

constexpr std::chrono::milliseconds kLook(1500);
// The interval between attempts, and the limit of one attempt.
constexpr int kBackoffMs = 300;

// The results of an attempt that an application sees.
struct Seen {
  bool ready = false;
  grpc::Status at_once;
  grpc::Status waiting;
  int connections = 0;
};

// Returns true if the channel becomes ready before `end`.
bool BecomesReady(grpc::Channel* channel,
                  std::chrono::system_clock::time_point end) {
  for (;;) {
    const grpc_connectivity_state state = channel->GetState(false);
    if (state == GRPC_CHANNEL_READY) return true;
    if (!channel->WaitForStateChange(state, end)) return false;
  }
}

grpc::Status CallOver(const std::shared_ptr<grpc::Channel>& channel,
                      bool wait_for_ready, std::chrono::milliseconds timeout) {
  grpc::ClientContext context;
  context.set_wait_for_ready(wait_for_ready);
  context.set_deadline(In(timeout));
  Empty response;
  return TestService::NewStub(channel)->EmptyCall(&context, Empty(), &response);
}

Seen LookAt(Manner manner, bool stock, const std::string& policy) {
  OddPort port(manner);
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kBackoffMs);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kBackoffMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kBackoffMs);
  arguments.SetLoadBalancingPolicyName(policy);
  const auto insecure = grpc::InsecureChannelCredentials();
  auto channel = grpc::CreateCustomChannel(
      absl::StrCat("ipv4:", port.address()),
      stock ? insecure : Credentials(insecure), arguments);
  const auto end = In(kLook);
  auto ready = std::async(std::launch::async,
                          [&] { return BecomesReady(channel.get(), end); });
  auto waiting = std::async(std::launch::async, [&] {
    return CallOver(channel, /*wait_for_ready=*/true, kLook);
  });
  Seen seen;
  seen.at_once = CallOver(channel, /*wait_for_ready=*/false, kLook);
  seen.waiting = waiting.get();
  seen.ready = ready.get();
  seen.connections = port.connections();
  return seen;
}

using Scene = std::tuple<Manner, std::string>;  // and the load balancing policy

std::string Text(const Scene& scene) {
  return absl::StrCat(NameOf(std::get<0>(scene)), "_", std::get<1>(scene));
}

struct Pair {
  Seen stock;
  Seen ours;
};

constexpr Manner kManners[] = {
    Manner::kHttp1,        Manner::kHttp1Stays,      Manner::kTls,
    Manner::kSsh,          Manner::kNothing,         Manner::kHangsUp,
    Manner::kHangsUpLater, Manner::kHalfSettings,    Manner::kHalfThenHangsUp,
    Manner::kOtherFrame,   Manner::kAcknowledges,    Manner::kSettings,
    Manner::kPenstock,     Manner::kPenstockHangsUp, Manner::kPenstockNonsense};
const std::string kPolicies[] = {"pick_first", "round_robin"};

// Returns the manner that looks the same to a stock client. For example, a
// stock client ignores Penstock's private setting.
Manner StockManner(Manner manner) {
  switch (manner) {
    case Manner::kPenstock:
      return Manner::kNothing;
    case Manner::kPenstockHangsUp:
    case Manner::kPenstockNonsense:
      return Manner::kHangsUpLater;
    default:
      return manner;
  }
}

// Tries all manners in parallel, because each takes long and little CPU time.
std::map<Scene, Pair> LookAtAll() {
  std::map<Scene, std::pair<std::future<Seen>, std::future<Seen>>> looks;
  for (Manner manner : kManners) {
    for (const std::string& policy : kPolicies) {
      looks[{manner, policy}] = {
          std::async(std::launch::async, LookAt, StockManner(manner),
                     /*stock=*/true, policy),
          std::async(std::launch::async, LookAt, manner, /*stock=*/false,
                     policy)};
    }
  }
  std::map<Scene, Pair> seen;
  for (auto& look : looks) {
    seen[look.first] = {look.second.first.get(), look.second.second.get()};
  }
  return seen;
}

class OddPortsTest : public testing::TestWithParam<Scene> {
 protected:
  static void SetUpTestSuite() {
    seen_ = new std::map<Scene, Pair>(LookAtAll());
  }
  static void TearDownTestSuite() { delete std::exchange(seen_, nullptr); }
  const Pair& seen() const { return seen_->at(GetParam()); }

 private:
  static std::map<Scene, Pair>* seen_;
};

std::map<Scene, Pair>* OddPortsTest::seen_ = nullptr;

TEST_P(OddPortsTest, AreTreatedAsByStock) {
  const Seen& stock = seen().stock;
  const Seen& ours = seen().ours;
  const bool is_http2 = std::get<0>(GetParam()) == Manner::kSettings;
  EXPECT_EQ(stock.ready, is_http2);
  EXPECT_EQ(ours.ready, is_http2);
  for (const Seen* look : {&stock, &ours}) {
    EXPECT_EQ(look->waiting.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED)
        << look->waiting.error_message();
    if (is_http2) continue;  // the call waits, unless an attempt took too long
    EXPECT_EQ(look->at_once.error_code(), grpc::StatusCode::UNAVAILABLE)
        << look->at_once.error_message();
  }
  // Expects roughly equal numbers of attempts. The backoff of each side has
  // random jitter, and a slow machine delays some attempts.
  EXPECT_GE(ours.connections, 1);
  EXPECT_LE(ours.connections, 2 * stock.connections + 2);
  EXPECT_LE(stock.connections, 2 * ours.connections + 2);
}

TEST(OddPortTest, TheStatusNamesTheCause) {
  const std::pair<Manner, std::string> causes[] = {
      {Manner::kHttp1Stays, "Trying to connect an http1.x server"},
      {Manner::kSsh, "Expected SETTINGS frame as the first frame"}};
  for (const auto& cause : causes) {
    const Seen seen = LookAt(cause.first, /*stock=*/false, "pick_first");
    EXPECT_NE(seen.at_once.error_message().find(
                  "the peer sent no SETTINGS of HTTP/2: " + cause.second),
              std::string::npos)
        << seen.at_once.error_message();
  }
}

// Tests the end of a channel during an attempt. Stock gRPC waits for SETTINGS
// until the attempt's timeout.
TEST(OddPortTest, AnAttemptEndsWithItsChannel) {
  for (Manner manner : {Manner::kNothing, Manner::kAcknowledges,
                        Manner::kHalfSettings, Manner::kPenstock}) {
    OddPort port(manner);
    std::future<bool> ended =
        std::async(std::launch::async, [&] { return port.ClientHangsUp(); });
    {
      grpc::ChannelArguments arguments;
      arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
      arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 1'000'000);
      auto channel = grpc::CreateCustomChannel(
          port.address(), Credentials(grpc::InsecureChannelCredentials()),
          arguments);
      EXPECT_EQ(CallOver(channel, /*wait_for_ready=*/true,
                         std::chrono::milliseconds(100))
                    .error_code(),
                grpc::StatusCode::DEADLINE_EXCEEDED);
    }
    EXPECT_TRUE(ended.get()) << manner;
  }
}

INSTANTIATE_TEST_SUITE_P(Each, OddPortsTest,
                         testing::Combine(testing::ValuesIn(kManners),
                                          testing::ValuesIn(kPolicies)),
                         [](const testing::TestParamInfo<Scene>& info) {
                           return Text(info.param);
                         });

}  // namespace
}  // namespace penstock::e2e
