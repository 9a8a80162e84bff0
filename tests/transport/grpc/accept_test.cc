// Tests streams that are opened while the connection or the server ends.

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"
#include "penstock/penstock.h"
#include "tests/transport/grpc/finishing_service.h"
#include "tests/transport/grpc/wire_peer.h"
#include "transport/wire/frame.h"

namespace penstock {
namespace core {
namespace {

using wire::FrameType;

class AcceptTest : public testing::Test {
 protected:
  AcceptTest() {
    grpc::ServerBuilder builder;
    Enable(&builder);
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                             &port_);
    builder.RegisterCallbackGenericService(&service_);
    server_ = builder.BuildAndStart();
  }
  ~AcceptTest() override {
    server_->Shutdown(std::chrono::system_clock::now());
  }

  FinishingService service_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

// Ends connections while streams are accepted. At the end of a connection, gRPC
// withdraws the callback that accepts streams, on a different thread.
TEST_F(AcceptTest, ConnectionsMayEndWhileTheirStreamsAreAccepted) {
  constexpr int kConnections = 250;
  constexpr uint32_t kStreams = 100;
  std::vector<std::thread> clients;
  for (int i = 0; i < 2; ++i) {
    clients.emplace_back([this] {
      for (int n = 0; n < kConnections; ++n) {
        auto client = WirePeer::Connect(port_);
        ASSERT_NE(client, nullptr);
        for (uint32_t id = 1; id <= kStreams; ++id) client->OpenCall(id);
      }
    });
  }
  for (std::thread& client : clients) client.join();
  auto client = WirePeer::Connect(port_);
  ASSERT_NE(client, nullptr);
  client->OpenCall(1);
  client->Send(FrameType::kHalfClose, 1);
  EXPECT_EQ(client->Next(), "trailers 1");
}

TEST_F(AcceptTest, StreamOpenedAfterAShutdownBeganIsRefused) {
  auto client = WirePeer::Connect(port_);
  ASSERT_NE(client, nullptr);
  // Opens a call that keeps the connection until the deadline.
  client->OpenCall(1);
  service_.AwaitCalls(1);
  std::thread shutdown([this] {
    server_->Shutdown(std::chrono::system_clock::now() +
                      std::chrono::seconds(20));
  });
  EXPECT_EQ(client->Next(), "goaway 4294967295");
  client->OpenCall(2);
  EXPECT_EQ(client->Next(), "ping");
  EXPECT_EQ(client->Next(), "reset 2");
  client->Send(FrameType::kHalfClose, 1);
  EXPECT_EQ(client->Next(), "trailers 1");
  client = nullptr;
  shutdown.join();
}

}  // namespace
}  // namespace core
}  // namespace penstock
