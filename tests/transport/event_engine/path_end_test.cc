// Tests the end of a connection, or of its path, at moments that a test with a
// real path cannot choose. The test takes the place of gRPC and TLS.

#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "tests/transport/event_engine/fake_tcp.h"
#include "tests/transport/event_engine/scripted_path.h"
#include "tests/transport/event_engine/user.h"
#include "transport/event_engine/introducer.h"
#include "transport/event_engine/stream/packet.h"

namespace penstock {
namespace event_engine {
namespace {

class PathEndTest : public testing::Test {
 protected:
  PathEndTest() { settings_.fabrics = {Fabric::kVerbs, Fabric::kTcp}; }
  ~PathEndTest() override { client_.Close(); }

  // Connects the client, and moves to the path.
  void Move() {
    WrapConnected(
        std::make_unique<FakeTcp>(down_, up_, AddressAt("10.0.0.1", 40000),
                                  AddressAt("10.0.0.2", 50051)),
        GetCrew(), settings_, client_.Take(),
        [this](const Settings&, const TcpAddress&, uint16_t) {
          return std::make_shared<ScriptedFabric>(script_);
        });
    client_.Write(Hello());
    client_.Write(Record(50, 'f'));
    const absl::Time deadline = absl::Now() + kPatience;
    while (Describe(true).path != "verbs" && absl::Now() < deadline) {
      absl::SleepFor(absl::Milliseconds(1));
    }
    ASSERT_EQ(Describe(true).path, "verbs");
  }

  Settings settings_;
  User client_;
  const std::shared_ptr<Script> script_ = std::make_shared<Script>();
  const std::shared_ptr<Pipe> up_ = std::make_shared<Pipe>(GetCrew());
  const std::shared_ptr<Pipe> down_ = std::make_shared<Pipe>(GetCrew());
};

// Tests a path that was lost before gRPC ended the connection, while no thread
// has polled since.
TEST_F(PathEndTest, PathThatWasLostUnnoticedLosesNoBytes) {
  Move();
  const size_t before = up_->all().size();
  client_.Write(Record(1000, 'z'));
  script_->has_ended = true;
  client_.Close();
  EXPECT_EQ(up_->all().substr(before + kMarkBytes), Record(1000, 'z'));
}

TEST_F(PathEndTest, PathThatCarriedNoBytesEndsAtOnce) {
  script_->is_drained = false;
  Move();
  client_.Close();
  const absl::Time deadline = absl::Now() + absl::Seconds(5);
  while (!script_->is_destroyed && absl::Now() < deadline) {
    absl::SleepFor(absl::Milliseconds(1));
  }
  EXPECT_TRUE(script_->is_destroyed);
}

// Tests a lost path that is required. The other end continues over TCP, and
// this end must not.
TEST_F(PathEndTest, BytesAfterARequiredPathAreNotRead) {
  settings_.policy = Policy::kRequire;
  Move();
  down_->Write(EncodeMark(0) + Record(10, 'b'));
  EXPECT_EQ(client_.Read(1), "");
  EXPECT_TRUE(absl::StrContains(client_.error().message(), "is required"))
      << client_.error();
}

}  // namespace
}  // namespace event_engine
}  // namespace penstock
