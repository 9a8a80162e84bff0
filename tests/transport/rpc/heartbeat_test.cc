// Tests that a proxy that drops silent connections keeps a connection whose
// calls use another path. Both sides are in busy mode. Sleeping threads would
// need doorbells, which pass through the proxy.

#include <chrono>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/transport/rpc/cutting_proxy.h"
#include "tests/transport/rpc/rpc_fixture.h"

namespace penstock {
namespace rpc {
namespace {

using progress::PollingMode;
using std::chrono::milliseconds;

constexpr milliseconds kSilence(1000);
constexpr int kHeartbeatMs = 100;

class HeartbeatTest : public testing::Test {
 protected:
  // Disables pings, because pings would also keep the connection alive.
  HeartbeatTest() { keepalive_.time = absl::InfiniteDuration(); }

  void Begin(int heartbeat_ms) {
    Server::Options options;
    options.address = "127.0.0.1:0";
    options.token = kToken;
    options.settings = With({Fabric::kShm, Fabric::kTcp});
    options.settings.heartbeat_ms = heartbeat_ms;
    options.polling = PollingMode::kBusy;
    options.keepalive = keepalive_;
    server_ =
        *Server::Start(options, [](const std::shared_ptr<IncomingCall>& call) {
          call->Respond(Response());
        });
    proxy_.CutAfterSilence(kSilence);
    proxy_.Set(server_->port(), SIZE_MAX);
    Client::Options client;
    client.target = absl::StrCat("127.0.0.1:", proxy_.port());
    client.token = kToken;
    client.settings = options.settings;
    client.polling = PollingMode::kBusy;
    client.keepalive = keepalive_;
    client_ = *Client::Connect(client, [](const absl::Status&) {});
  }

  Result Call() {
    const Awaited<Result> result;
    Request request;
    request.method = "any";
    client_->Call(std::move(request),
                  [result](Result answer) { result.Set(std::move(answer)); });
    absl::optional<Result> answer = result.Get();
    return answer.has_value() ? *std::move(answer)
                              : absl::UnknownError("no report came");
  }

  connection::Keepalive::Config keepalive_ = DefaultKeepalive();
  CuttingProxy proxy_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<Client> client_;
};

TEST_F(HeartbeatTest, ConnectionInUseIsNotSilent) {
  Begin(kHeartbeatMs);
  EXPECT_TRUE(proxy_.OutlivesSilence([this] { Call(); }));
  EXPECT_TRUE(Call().ok());
  EXPECT_EQ(client_->DescribePath()->fabric, "shm");
  EXPECT_EQ(proxy_.connections(), 1u);
}

TEST_F(HeartbeatTest, PingsKeepAnIdleConnectionUp) {
  keepalive_.time = absl::Milliseconds(kHeartbeatMs);
  Begin(0);
  ASSERT_TRUE(Call().ok());
  EXPECT_TRUE(proxy_.OutlivesSilence([] {}));
  ASSERT_TRUE(Call().ok());
  EXPECT_EQ(client_->DescribePath()->fabric, "shm");
}

}  // namespace
}  // namespace rpc
}  // namespace penstock
