// Tests the end of a connection, or of its path, at moments that a test with a
// real path cannot choose. The test takes the place of gRPC and TLS.

#include <sys/eventfd.h>

#include <functional>
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
#include "transport/event_engine/threads/crew.h"
#include "transport/progress/poll_set.h"
#include "transport/progress/spin_policy.h"

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
        crew_, settings_, client_.Take(),
        [this](const Settings&, const TcpAddress&, uint16_t) {
          return std::make_shared<ScriptedFabric>(script_);
        });
    client_.Write(Hello());
    client_.Write(Record(50, 'f'));
    ASSERT_TRUE(WaitFor([] { return Describe(true).path == "verbs"; }));
  }
  static bool WaitFor(const std::function<bool()>& condition) {
    const absl::Time deadline = absl::Now() + kPatience;
    while (!condition() && absl::Now() < deadline) {
      absl::SleepFor(absl::Milliseconds(1));
    }
    return condition();
  }

  Settings settings_;
  Crew* crew_ = GetCrew();
  User client_;
  const std::shared_ptr<Script> script_ = std::make_shared<Script>();
  const std::shared_ptr<Pipe> up_ = std::make_shared<Pipe>(GetCrew());
  const std::shared_ptr<Pipe> down_ = std::make_shared<Pipe>(GetCrew());
};

// Tests a path that was lost before gRPC ended the connection. No thread has
// polled the path in between.
TEST_F(PathEndTest, PathThatWasLostUnnoticedLosesNoBytes) {
  Move();
  const size_t before = up_->all().size();
  client_.Write(Record(1000, 'z'));
  script_->only_test_notices = true;
  script_->ended_paths = 1;
  client_.Close();
  EXPECT_EQ(up_->all().substr(before + kMarkBytes), Record(1000, 'z'));
}

TEST_F(PathEndTest, PathThatCarriedNoBytesEndsAtOnce) {
  script_->is_drained = false;
  Move();
  const absl::Time begin = absl::Now();
  client_.Close();
  EXPECT_TRUE(WaitFor([this] { return script_->destroyed_paths == 1; }));
  EXPECT_LT(absl::Now() - begin, absl::Seconds(5));
}

// gRPC ends a connection whose second path has nothing to send. TCP is still
// sending the bytes of the first path. The input of the second path is invalid
// and is never taken, so a thread that polled the path would find the input
// again and again.
TEST_F(PathEndTest, NonsenseAfterTheEndKeepsNoThreadAwake) {
  auto* const set = new progress::PollSet(1);  // a crew that never ends
  const auto crew = Crew::Create(set, progress::PollingMode::kEvent);
  ASSERT_TRUE(crew.ok()) << crew.status();
  crew_ = *crew;
  Move();
  client_.Write(Record(1000, 'z'));
  up_->Fill();
  script_->ended_paths = 1;
  down_->Write(EncodeMark(0) + Record(10, 'b'));
  ASSERT_TRUE(WaitFor([this] {
    return script_->paths == 2 && Describe(true).path == "verbs";
  }));
  client_.Close();
  script_->has_nonsense = true;
  ASSERT_EQ(eventfd_write(script_->doorbell, 1), 0);
  EXPECT_TRUE(WaitFor([set] { return set->empty(); }));
  EXPECT_EQ(script_->destroyed_paths, 1) << "TCP has still to send";
  up_->Empty();
  EXPECT_TRUE(WaitFor([this] { return script_->destroyed_paths == 2; }));
}

// Tests a lost path that is required. The other end may continue over TCP, but
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
