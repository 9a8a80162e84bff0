// Tests clients of a process whose connections usually end soon. New
// connections begin on tcp, and get their side path after a while.

#include <cstddef>
#include <future>
#include <memory>
#include <string>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/transport/rpc/rpc_fixture.h"
#include "transport/base/steady_time.h"
#include "transport/metrics/labels.h"
#include "transport/paths/short_lives.h"
#include "transport/progress/event_loop.h"

namespace penstock {
namespace rpc {
namespace {

using paths::ShortLives;

class ShortConnectionsTest : public RpcFixture {
 protected:
  ShortConnectionsTest() {
    // Records many ends, as if this process had just closed many connections.
    const absl::Time now = base::SteadyNow();
    for (size_t i = 0; i < ShortLives::kMany; ++i) {
      ShortLives::OfProcess()->OnEnd(now, now);
    }
  }
  static uint64_t SentOver(metrics::Fabric fabric, const Client& client) {
    uint64_t messages = 0;
    const session::Counters counters = client.counters();
    for (const auto& kind : counters.traffic[static_cast<int>(fabric)]) {
      messages += kind[static_cast<int>(metrics::Direction::kSent)].messages;
    }
    return messages;
  }
  static std::string AwaitShm(const Client& client) {
    const absl::Time end = absl::Now() + absl::Seconds(20);
    std::string fabric;
    while (fabric != "shm" && absl::Now() < end) {
      fabric = client.DescribePath()->fabric;
      absl::SleepFor(absl::Milliseconds(1));
    }
    return fabric;
  }
};

TEST_P(ShortConnectionsTest, FirstCallGoesOverTcpAndShmFollows) {
  ServeEcho();
  // Blocks the loop, so that the call is waiting when the connection begins.
  std::promise<void> called;
  std::shared_future<void> is_called = called.get_future().share();
  const Client::Options options = ClientOptions();
  (*progress::EventLoop::GetPolling(options.polling))->Post([is_called] {
    is_called.wait();
  });
  const std::unique_ptr<Client> client = Connect(options);
  Request request = Named("early");
  request.payload = Text("payload");
  const Awaited<Result> answer = Begin(client.get(), std::move(request));
  called.set_value();
  ASSERT_TRUE(answer.Get()->ok());
  EXPECT_EQ(SentOver(metrics::Fabric::kTcp, *client), 1);
  EXPECT_EQ(AwaitShm(*client), "shm");
  EXPECT_TRUE(Call(client.get(), Named("late")).ok());
}

INSTANTIATE_TEST_SUITE_P(Fabrics, ShortConnectionsTest,
                         testing::Values(Fabric::kShm));

}  // namespace
}  // namespace rpc
}  // namespace penstock
