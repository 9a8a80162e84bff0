#include "transport/session/send_meter.h"

#include <cstdint>

#include "gtest/gtest.h"
#include "transport/fabric/fabric.h"

namespace penstock {
namespace session {
namespace {

constexpr size_t kLeast = 1000;

fabric::Capabilities Path() {
  fabric::Capabilities path;
  path.eager_max_bytes = 8000;
  path.eager_range = {kLeast, 16000};
  path.can_load = true;
  return path;
}

class SendMeterTest : public ::testing::Test {
 protected:
  SendMeterTest() {
    tuning_.now_ns = [this] {
      ++looks_;
      return now_ns_;
    };
  }
  // Sends a message. The call takes `ns`.
  void Send(SendMeter* meter, size_t bytes, uint64_t ns) {
    const uint64_t begun_ns = meter->Begin(bytes);
    now_ns_ += ns;
    if (bytes <= meter->eager_max_bytes()) {
      meter->OnCopied(begun_ns, bytes);
    } else {
      meter->OnAnnounced(begun_ns, bytes);
    }
  }
  // Sends messages of many sizes. Copying takes 1 ns per byte, and announcing
  // takes 500 ns.
  void SendAll(SendMeter* meter) {
    for (int i = 0; i < 4000; ++i) {
      const size_t bytes = 1000 * (1 + i % 31);
      Send(meter, bytes, bytes <= meter->eager_max_bytes() ? bytes : 500);
    }
  }

  Tuning tuning_;
  uint64_t now_ns_ = 1;
  int looks_ = 0;
};

TEST_F(SendMeterTest, NoClockIsReadForWhatIsEagerWhateverIsMeasured) {
  SendMeter meter(tuning_, Path());
  for (int i = 0; i < 1000; ++i) Send(&meter, i % kLeast, 10);
  EXPECT_EQ(looks_, 0);
}

TEST_F(SendMeterTest, AfterTheFirstMessagesOneInEightIsTimed) {
  SendMeter meter(tuning_, Path());
  for (int i = 0; i < 128; ++i) Send(&meter, kLeast, 1000);
  EXPECT_EQ(looks_, 2 * 128);
  looks_ = 0;
  for (int i = 0; i < 800; ++i) Send(&meter, kLeast, 1000);
  EXPECT_EQ(looks_, 2 * 100);
}

TEST_F(SendMeterTest, TheFirstMessagesOfEachPathAreTimed) {
  SendMeter meter(tuning_, Path());
  for (int i = 0; i < 1000; ++i) Send(&meter, kLeast, 1000);
  meter.UseFastPath(Path());
  looks_ = 0;
  for (int i = 0; i < 128; ++i) Send(&meter, kLeast, 1000);
  EXPECT_EQ(looks_, 2 * 128);
}

TEST_F(SendMeterTest, WhatCannotMoveIsNotTimed) {
  fabric::Capabilities path = Path();
  path.eager_range = {};
  SendMeter without_range(tuning_, path);
  SendAll(&without_range);
  EXPECT_EQ(without_range.eager_max_bytes(), 8000u);
  tuning_.eager_max_bytes = 5000;
  SendMeter fixed(tuning_, Path());
  SendAll(&fixed);
  EXPECT_EQ(fixed.eager_max_bytes(), 5000u);
  EXPECT_EQ(looks_, 0);
}

// Expects 2 * 500 ns divided by 2 ns per byte.
TEST_F(SendMeterTest, EachPathHasALimitOfItsOwn) {
  SendMeter meter(tuning_, Path());
  SendAll(&meter);
  EXPECT_EQ(meter.eager_max_bytes(), 1000u);
  meter.UseFastPath(Path());
  EXPECT_EQ(meter.eager_max_bytes(), 8000u);
  meter.LoseFastPath();
  EXPECT_EQ(meter.eager_max_bytes(), 1000u);
  meter.UseFastPath(Path());
  EXPECT_EQ(meter.eager_max_bytes(), 8000u);
  SendAll(&meter);
  EXPECT_EQ(meter.eager_max_bytes(), 1000u);
}

}  // namespace
}  // namespace session
}  // namespace penstock
