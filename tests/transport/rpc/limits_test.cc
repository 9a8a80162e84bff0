// Tests the limits of clients and servers.

#include <memory>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "tests/transport/rpc/rpc_fixture.h"

namespace penstock {
namespace rpc {
namespace {

// Tests each limit on a message that is announced, and on one that is sent
// without an announcement.
class LimitsTest : public RpcFixture {
 protected:
  void Serve(Server::Options options) {
    options.address = "127.0.0.1:0";
    options.token = kToken;
    options.settings = MakeSettings();
    absl::StatusOr<std::unique_ptr<Server>> server = Server::Start(
        options,
        [kept = kept_](const std::shared_ptr<IncomingCall>& call) {
          if (call->request().method == "keep") return kept.Set(call);
          call->Respond(Response{"", call->request().payload});
        },
        [](const std::shared_ptr<IncomingStream>& stream) {
          stream->Read([stream](const absl::optional<memory::Payload>& got) {
            if (got.has_value()) stream->Write(*got, nullptr);
            stream->Finish({absl::OkStatus(), ""});
          });
        });
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  // Returns the ends of a unary call and of a stream with a message of `size`.
  static std::pair<absl::StatusCode, absl::StatusCode> Echo(Client* client,
                                                            size_t size) {
    const memory::Payload message = Text(std::string(size, 'x'));
    Request request = Named("echo");
    request.payload = message;
    const absl::StatusCode unary =
        Call(client, std::move(request)).status().code();
    const Awaited<absl::StatusCode> ended;
    const std::unique_ptr<OutgoingStream> stream = client->Open(
        Named("echo"), [](const std::string&) {},
        [ended](const End& end) { ended.Set(end.status.code()); });
    stream->Write(message, nullptr, /*is_last=*/true);
    return {unary, ended.Get().value_or(absl::StatusCode::kUnknown)};
  }
  static void ExpectLimit(Client* client, size_t limit) {
    using Codes = std::pair<absl::StatusCode, absl::StatusCode>;
    const Codes good(absl::StatusCode::kOk, absl::StatusCode::kOk);
    const Codes bad(absl::StatusCode::kResourceExhausted,
                    absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(Echo(client, limit), good) << limit;
    EXPECT_EQ(Echo(client, limit + 1), bad) << limit;
    EXPECT_EQ(Echo(client, limit), good) << limit;
  }

  const Awaited<std::shared_ptr<IncomingCall>> kept_;
};

constexpr int64_t kLimits[] = {5, 1 << 20};

TEST_P(LimitsTest, ClientSendsNoMore) {
  Serve(Server::Options());
  for (const int64_t limit : kLimits) {
    Client::Options options = ClientOptions();
    options.max_send_bytes = limit;
    ExpectLimit(Connect(options).get(), limit);
  }
}

TEST_P(LimitsTest, ClientReceivesNoMore) {
  Serve(Server::Options());
  for (const int64_t limit : kLimits) {
    Client::Options options = ClientOptions();
    options.max_receive_bytes = limit;
    ExpectLimit(Connect(options).get(), limit);
  }
}

TEST_P(LimitsTest, ServerSendsNoMore) {
  for (const int64_t limit : kLimits) {
    Server::Options options;
    options.max_send_bytes = limit;
    Serve(options);
    ExpectLimit(Connect().get(), limit);
  }
}

TEST_P(LimitsTest, ServerReceivesNoMore) {
  for (const int64_t limit : kLimits) {
    Server::Options options;
    options.max_receive_bytes = limit;
    Serve(options);
    ExpectLimit(Connect().get(), limit);
  }
}

TEST_P(LimitsTest, HandlersWorkOnNoMoreCalls) {
  Server::Options options;
  options.max_handled_calls = 1;
  Serve(options);
  const std::unique_ptr<Client> client = Connect();
  const Awaited<Result> first = Begin(client.get(), Named("keep"));
  std::shared_ptr<IncomingCall> call = *kept_.Get();
  const auto exhausted = absl::StatusCode::kResourceExhausted;
  const std::unique_ptr<Client> other = Connect();
  EXPECT_EQ(Echo(client.get(), 1), std::make_pair(exhausted, exhausted));
  EXPECT_EQ(Echo(other.get(), 1), std::make_pair(exhausted, exhausted));
  call->Respond(Response());
  EXPECT_TRUE(first.Get()->ok());
  // Expects an error, because the handler is still working on the first call.
  EXPECT_EQ(Call(client.get(), Named("any")).status().code(), exhausted);
  call = nullptr;
  EXPECT_TRUE(Call(other.get(), Named("any")).ok());
}

INSTANTIATE_TEST_SUITE_P(All, LimitsTest,
                         testing::Values(Fabric::kShm, Fabric::kTcp),
                         [](const auto& info) {
                           return FabricName(info.param);
                         });

}  // namespace
}  // namespace rpc
}  // namespace penstock
