// Tests which owners are told of a device's events and of the time.

#include "transport/fabric/verbs/supervisor.h"

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/transport/fabric/verbs/drain_loop.h"
#include "tests/transport/fabric/verbs/ends.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

class Ward : public Supervised {
 public:
  Ward(ibv_context* device, uint8_t port) : device_(device), port_(port) {}
  ibv_context* device() const override { return device_; }
  uint8_t port() const override { return port_; }
  void OnDeviceEvent(const absl::Status& cause) override {
    EXPECT_FALSE(cause.ok());
    ++events;
  }
  void OnTick() override { ++ticks; }

  std::atomic<int> events{0};
  std::atomic<int> ticks{0};

 private:
  ibv_context* const device_;
  const uint8_t port_;
};

class SupervisorTest : public testing::Test {
 protected:
  ~SupervisorTest() override {
    supervisor_.reset();
    DrainLoop();
    EXPECT_TRUE(verbs_->misuse().empty());
  }
  std::shared_ptr<Ward> NewWard(ibv_context* device, uint8_t port = 1) {
    auto ward = std::make_shared<Ward>(device, port);
    supervisor_->Add(ward);
    return ward;
  }

  // The library calls of the supervisor. Never deleted, because the loop may
  // hold the supervisor a little longer.
  FakeVerbs* const verbs_ = new FakeVerbs();
  ibv_context* const one_ = verbs_->AddDevice({"mlx5_0", {"10.0.0.1"}});
  ibv_context* const other_ = verbs_->AddDevice({"mlx5_1", {"10.0.0.2"}});
  std::shared_ptr<Supervisor> supervisor_ =
      Supervisor::For(verbs_, progress::EventLoop::Get().value());
};

TEST_F(SupervisorTest, FailedDeviceIsToldToItsOwn) {
  auto mine = NewWard(one_);
  auto also_mine = NewWard(one_, /*port=*/2);
  auto foreign = NewWard(other_);
  verbs_->RemoveDevice("mlx5_0");
  DrainLoop();
  EXPECT_EQ(mine->events, 1);
  EXPECT_EQ(also_mine->events, 1);
  EXPECT_EQ(foreign->events, 0);
}

TEST_F(SupervisorTest, PortThatIsDownIsToldToThoseOfThePort) {
  auto mine = NewWard(one_);
  auto next_door = NewWard(one_, /*port=*/2);
  verbs_->PortDown("mlx5_0");
  DrainLoop();
  EXPECT_EQ(mine->events, 1);
  EXPECT_EQ(next_door->events, 0);
  verbs_->PortUp("mlx5_0");
  DrainLoop();
  EXPECT_EQ(mine->events, 1) << "good news is no event";
}

TEST_F(SupervisorTest, WhoIsGoneIsNotTold) {
  NewWard(one_).reset();
  supervisor_->Add(std::weak_ptr<Supervised>());
  auto mine = NewWard(one_);
  verbs_->PortDown("mlx5_0");
  DrainLoop();
  EXPECT_EQ(mine->events, 1);
}

TEST_F(SupervisorTest, TimeIsToldWhileThereIsAnybody) {
  auto ward = NewWard(one_);
  const absl::Time deadline = absl::Now() + absl::Seconds(20);
  while (ward->ticks < 2 && absl::Now() < deadline) DrainLoop();
  EXPECT_GE(ward->ticks, 2);
  ward.reset();
  // Adds a ward after a pause. The new ward must get ticks, too.
  auto late = NewWard(other_);
  while (late->ticks < 1 && absl::Now() < deadline) DrainLoop();
  EXPECT_GE(late->ticks, 1);
}

TEST(RecoveryTest, PortThatIsDownEndsTheConnectionWithThatCause) {
  Ends ends;
  ASSERT_TRUE(ends.Connect().ok());
  ends.api->PortDown("client");
  ends.Exchange();
  ASSERT_EQ(ends.client.events.broken.size(), 1u);
  EXPECT_TRUE(
      absl::StrContains(ends.client.events.broken[0].message(), "port"));
  EXPECT_TRUE(ends.server.events.broken.empty()) << "it knows nothing yet";
  ends.api->PortUp("client");
  ends.Exchange();
  EXPECT_EQ(ends.server.events.broken.size(), 1u) << "the goodbye has come";
  EXPECT_TRUE(ends.Connect().ok());
}

TEST(RecoveryTest, DeviceThatComesBackIsOfferedAgain) {
  Ends ends;
  ASSERT_TRUE(ends.Connect().ok());
  const std::string before = ends.listening->Offer().value();
  ends.api->RemoveDevice("server");
  ends.Exchange();
  EXPECT_EQ(ends.server.events.broken.size(), 1u);
  EXPECT_EQ(ends.listening->Offer().status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_FALSE(ends.Connect().ok());
  DeviceOptions device;
  device.name = "server again";
  device.addresses = {"10.0.0.2"};
  ends.api->AddDevice(device);
  EXPECT_EQ(ends.listening->Offer().value(), before)
      << "who has the old offer finds it";
  EXPECT_TRUE(ends.Connect().ok());
}

TEST(RecoveryTest, IdleConnectionIsNotTakenForADeadOne) {
  Options options;
  options.completion_timeout = absl::Milliseconds(600);
  Ends ends(DeviceOptions(), options);
  ASSERT_TRUE(ends.Connect().ok());
  ASSERT_TRUE(Ends::Send(ends.client, "told of by no completion"));
  const absl::Time over = absl::Now() + absl::Seconds(2);
  EXPECT_TRUE(ends.ExchangeUntil([&] { return absl::Now() > over; }));
  EXPECT_TRUE(ends.client.events.broken.empty());
  EXPECT_TRUE(ends.server.events.broken.empty());
}

}  // namespace
}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
