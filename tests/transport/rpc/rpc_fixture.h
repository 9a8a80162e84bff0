// A fixture of clients and servers over each available fabric.

#ifndef PENSTOCK_TESTS_TRANSPORT_RPC_RPC_FIXTURE_H_
#define PENSTOCK_TESTS_TRANSPORT_RPC_RPC_FIXTURE_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/transport/rpc/awaited.h"
#include "transport/rpc/client.h"
#include "transport/rpc/server.h"

namespace penstock {
namespace rpc {

using Result = absl::StatusOr<Response>;

constexpr char kToken[] = "a token";

inline memory::Payload Text(const std::string& text) {
  auto owner = std::make_shared<const std::string>(text);
  return memory::Payload(memory::Bytes{
      reinterpret_cast<const uint8_t*>(owner->data()), owner->size(), owner});
}

inline std::string ToString(const memory::Payload& payload) {
  std::string text(payload.size(), '\0');
  payload.CopyTo(reinterpret_cast<uint8_t*>(&text[0]));
  return text;
}

inline Settings With(std::vector<Fabric> fabrics) {
  Settings settings;
  settings.fabrics = std::move(fabrics);
  return settings;
}

class RpcFixture : public testing::TestWithParam<Fabric> {
 protected:
  static Settings MakeSettings() {
    return GetParam() == Fabric::kTcp ? With({Fabric::kTcp})
                                      : With({GetParam(), Fabric::kTcp});
  }

  void Serve(Server::Handler handler, Placer placer = nullptr) {
    Server::Options options;
    options.address = "127.0.0.1:0";
    options.token = kToken;
    options.settings = MakeSettings();
    options.placer = std::move(placer);
    absl::StatusOr<std::unique_ptr<Server>> server =
        Server::Start(options, std::move(handler));
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  void ServeEcho() {
    Serve([](std::shared_ptr<IncomingCall> call) {
      const Request& request = call->request();
      call->Respond(
          Response{request.method + " " + request.metadata, request.payload});
    });
  }

  Client::Options ClientOptions() const {
    Client::Options options;
    options.target = absl::StrCat("127.0.0.1:", server_->port());
    options.token = kToken;
    options.settings = MakeSettings();
    return options;
  }
  std::unique_ptr<Client> Connect(const Client::Options& options) {
    absl::StatusOr<std::unique_ptr<Client>> client = Client::Connect(
        options,
        [closed = closed_](const absl::Status& why) { closed.Set(why); });
    EXPECT_TRUE(client.ok()) << client.status();
    return *std::move(client);
  }
  std::unique_ptr<Client> Connect() { return Connect(ClientOptions()); }

  static Awaited<Result> Begin(Client* client, Request request) {
    Awaited<Result> result;
    client->Call(std::move(request),
                 [result](Result answer) { result.Set(std::move(answer)); });
    return result;
  }
  static Result Call(Client* client, Request request) {
    absl::optional<Result> result = Begin(client, std::move(request)).Get();
    if (!result.has_value()) return absl::UnknownError("no report came");
    return *std::move(result);
  }
  static Request Named(const std::string& method) {
    Request request;
    request.method = method;
    return request;
  }

  const Awaited<absl::Status> closed_;
  std::unique_ptr<Server> server_;
};

}  // namespace rpc
}  // namespace penstock

#endif  // PENSTOCK_TESTS_TRANSPORT_RPC_RPC_FIXTURE_H_
