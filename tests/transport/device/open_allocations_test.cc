// Checks which threads wait for each other while allocations are opened and
// closed.

#include "transport/device/open_allocations.h"

#include <chrono>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/transport/device/fake_process.h"

namespace penstock {
namespace device {
namespace {

constexpr abi::Address kAddress = 1 << 20;
constexpr size_t kBytes = 4096;

// A driver that blocks each close until the test allows it.
class SlowToClose : public FakeDriver {
 public:
  abi::Result IpcCloseMemHandle(abi::Address) override {
    closing_.set_value();
    may_close_.get_future().wait();
    return abi::kSuccess;
  }
  void AwaitClosing() { closing_.get_future().wait(); }
  void LetClose() { may_close_.set_value(); }

 private:
  std::promise<void> closing_;
  std::promise<void> may_close_;
};

class OpenAllocationsTest : public testing::Test {
 protected:
  // Starts a task on its own thread.
  template <typename Task>
  static auto Start(Task task) {
    return std::async(std::launch::async, std::move(task));
  }
  template <typename Result>
  static bool Waits(const std::future<Result>& task) {
    return task.wait_for(std::chrono::milliseconds(50)) ==
           std::future_status::timeout;
  }
  template <typename Result>
  static bool Returns(const std::future<Result>& task) {
    return task.wait_for(std::chrono::seconds(30)) == std::future_status::ready;
  }

  absl::StatusOr<memory::OpenAllocation> Open(const std::string& name) {
    return open_.Open(name, [&]() -> absl::StatusOr<Mapping> {
      ++maps_;
      return Mapping{kAddress, kBytes, OpenedMemory()};
    });
  }
  // Opens the allocation on another thread. Returns when that thread is inside
  // the driver. The thread leaves the driver, with `result`, when the test says
  // so.
  std::future<absl::StatusOr<memory::OpenAllocation>> StartOpening(
      const absl::Status& result) {
    auto opener = Start([this, result] {
      return open_.Open("name", [&]() -> absl::StatusOr<Mapping> {
        opening_.set_value();
        may_open_.get_future().wait();
        if (!result.ok()) return result;
        return Mapping{kAddress, kBytes, OpenedMemory()};
      });
    });
    opening_.get_future().wait();
    return opener;
  }

  FakeProcess process_;
  OpenAllocations open_{process_.access(), 2};
  std::promise<void> opening_;
  std::promise<void> may_open_;
  int maps_ = 0;
};

// Calls IsForeign() while another thread opens memory. Each thread that sends
// memory calls IsForeign(), and must not wait. Opening memory may create a
// context, which takes half a second.
TEST_F(OpenAllocationsTest, WhoSendsDoesNotWaitForWhoOpens) {
  auto opener = StartOpening(absl::OkStatus());
  auto asked = Start([&] { return open_.IsForeign(kAddress); });
  EXPECT_TRUE(Returns(asked));
  may_open_.set_value();
  EXPECT_TRUE(opener.get().ok());
}

TEST_F(OpenAllocationsTest, WhoOpensAnotherOneDoesNotWait) {
  auto opener = StartOpening(absl::OkStatus());
  auto others = Start([&] {
    const auto other = Open("other");
    EXPECT_TRUE(other.ok()) << other.status();
    return Open("third").status();
  });
  EXPECT_TRUE(Returns(others));
  may_open_.set_value();
  EXPECT_TRUE(absl::IsResourceExhausted(others.get()))
      << "that which is being opened counts";
  EXPECT_TRUE(opener.get().ok());
}

TEST_F(OpenAllocationsTest, WhoOpensTheSameOneWaitsAndSharesIt) {
  auto opener = StartOpening(absl::OkStatus());
  auto second = Start([&] { return Open("name"); });
  EXPECT_TRUE(Waits(second));
  may_open_.set_value();
  // Expects that both callers hold the allocation when the second one returns.
  const auto first = opener.get();
  const auto same = second.get();
  ASSERT_TRUE(first.ok() && same.ok());
  EXPECT_EQ(first->data, same->data);
  EXPECT_EQ(maps_, 0);
}

TEST_F(OpenAllocationsTest, WhoWaitsForOneThatCannotBeOpenedTriesIt) {
  auto opener = StartOpening(absl::UnavailableError("gone"));
  auto second = Start([&] { return Open("name").status(); });
  EXPECT_TRUE(Waits(second));
  may_open_.set_value();
  EXPECT_TRUE(absl::IsUnavailable(opener.get().status()));
  EXPECT_TRUE(second.get().ok());
  EXPECT_EQ(maps_, 1);
}

// Opens allocations while another one is being closed. Closing may wait for the
// work of the device. Only a thread that opens the closing allocation may wait.
TEST_F(OpenAllocationsTest, NobodyWaitsForWhoClosesButWhoOpensTheSameOne) {
  SlowToClose driver;
  Devices devices(&driver, 0);
  Device* const device = (*devices.At(0))->device.get();
  auto held = open_.Open("name", [&]() -> absl::StatusOr<Mapping> {
    return Mapping{kAddress, kBytes, OpenedMemory(device, kAddress)};
  });
  ASSERT_TRUE(held.ok());
  EXPECT_TRUE(open_.IsForeign(kAddress + kBytes - 1));
  auto closer = Start([&] { held->owner.reset(); });
  driver.AwaitClosing();

  auto asked = Start([&] { return open_.IsForeign(kAddress); });
  auto other = Start([&] { return Open("other").status(); });
  auto same = Start([&] { return Open("name").status(); });
  EXPECT_TRUE(Returns(asked));
  EXPECT_TRUE(Returns(other));
  EXPECT_TRUE(Waits(same));
  EXPECT_EQ(maps_, 1);
  driver.LetClose();
  closer.get();
  EXPECT_TRUE(same.get().ok());
  EXPECT_EQ(maps_, 2);
}

}  // namespace
}  // namespace device
}  // namespace penstock
