// Tests a client whose server accepts the connection late. CMakeLists.txt
// builds this file, because Bazel's gRPC is older.

#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "tests/transport/event_engine/fake_tcp.h"
#include "tests/transport/event_engine/user.h"
#include "transport/event_engine/introducer.h"

namespace penstock {
namespace event_engine {
namespace {

constexpr char kIp[] = "127.77.7.7";
constexpr uint16_t kServerPort = 50051;

// A connection within one host, which the server has not accepted yet.
class LateServerTest : public testing::Test {
 protected:
  LateServerTest() {
    places_.Open(server_address_, kServerPort);
    WrapConnected(
        std::make_unique<FakeTcp>(down_, up_, client_address_, server_address_),
        GetCrew(), settings_, client_.Take());
    client_.Wait();
  }
  void Accept() {
    places_.WrapAccepted(
        std::make_unique<FakeTcp>(up_, down_, server_address_, client_address_),
        GetCrew(), server_.Take());
    server_.Wait();
  }

  const Settings settings_;
  const EventEngine::ResolvedAddress client_address_ = AddressAt(kIp, 40000);
  const EventEngine::ResolvedAddress server_address_ =
      AddressAt(kIp, kServerPort);
  const std::shared_ptr<Pipe> up_ = std::make_shared<Pipe>(GetCrew());
  const std::shared_ptr<Pipe> down_ = std::make_shared<Pipe>(GetCrew());
  MeetingPlaces places_{settings_};
  User client_, server_;
};

TEST_F(LateServerTest, ClientAsksAgainAfterTheServersFirstBytes) {
  EXPECT_FALSE(WaitForReason().empty()) << "the client has given up";
  Accept();
  server_.Write("settings");
  EXPECT_EQ(client_.Read(8), "settings");
  EXPECT_TRUE(WaitForPath("shm")) << WaitForReason();
  const size_t on_tcp = up_->all().size();
  client_.Write("call");
  EXPECT_EQ(server_.Read(4), "call");
  EXPECT_EQ(up_->all().size(), on_tcp);
}

// Tests a server that never comes to the meeting, like stock gRPC.
TEST_F(LateServerTest, ClientOfAStockServerStaysOnTcp) {
  EXPECT_FALSE(WaitForReason().empty());
  down_->Write("settings");
  EXPECT_EQ(client_.Read(8), "settings");
  down_->Write("more");
  EXPECT_EQ(client_.Read(4), "more");
  client_.Write("call");
  EXPECT_EQ(up_->all(), "call");
  EXPECT_EQ(Describe(true).path, "http2");
}

}  // namespace
}  // namespace event_engine
}  // namespace penstock
