// Tries windows on real drivers. Each trial must find the fault of Soft-RoCE
// within the timeout. Nothing may hang or remain.

#include <dirent.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/vm/vm_test.h"
#include "transport/fabric/verbs/cm_channel.h"
#include "transport/fabric/verbs/device.h"
#include "transport/fabric/verbs/library.h"
#include "transport/fabric/verbs/window_trial.h"
#include "transport/progress/event_loop.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

class WindowTrialDeviceTest : public VmTest {
 protected:
  void SetUp() override {
    VmTest::SetUp();
    if (IsSkipped()) return;
    api_ = OpenLibrary().value();
    channel_ =
        CmChannel::Create(api_, progress::EventLoop::Get().value()).value();
    bound_ = BindToDevices(api_, channel_.get(), Options()).value();
    ASSERT_GE(bound_.size(), 2u);
  }

  void ExpectFoundOut(const BoundId& id) {
    const absl::Time begin = absl::Now();
    const absl::Status status =
        TryWindows(api_, id.id->verbs, id.id->port_num).status();
    EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
    EXPECT_EQ(status.message(), "reads reach beyond a window");
    EXPECT_LT(absl::Now() - begin, kWindowTrialLimit);
  }
  void ExpectForgiven(const BoundId& id) {
    const absl::StatusOr<WindowTrust> trust =
        TryWindows(api_, id.id->verbs, id.id->port_num, kWindowTrialLimit,
                   RangeRule::kForgiven);
    ASSERT_TRUE(trust.ok()) << trust.status();
    EXPECT_EQ(*trust, WindowTrust::kAllButRange);
  }

  static int Descriptors() {
    int count = 0;
    DIR* const folder = opendir("/proc/self/fd");
    while (readdir(folder) != nullptr) ++count;
    closedir(folder);
    return count;
  }

  Api* api_ = nullptr;
  std::shared_ptr<CmChannel> channel_;
  std::vector<BoundId> bound_;
};

TEST_F(WindowTrialDeviceTest, SoftRoceIsFoundOutEachTime) {
  ExpectFoundOut(bound_[0]);
  const int before = Descriptors();
  for (int i = 0; i < 20; ++i) {
    for (const BoundId& id : bound_) ExpectFoundOut(id);
  }
  EXPECT_EQ(Descriptors(), before);
}

// Tests that only the range of windows fails on Soft-RoCE. Tests of windows on
// Soft-RoCE rely on this.
TEST_F(WindowTrialDeviceTest, ItFailsInNothingButTheRange) {
  for (int i = 0; i < 10; ++i) {
    for (const BoundId& id : bound_) ExpectForgiven(id);
  }
}

TEST_F(WindowTrialDeviceTest, ThreadsMayTryAtOnce) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([this, i] {
      for (int k = 0; k < 5; ++k) ExpectFoundOut(bound_[i % bound_.size()]);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
