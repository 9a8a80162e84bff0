#include "transport/memory/device_ranges.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/transport/memory/fake_device_access.h"
#include "transport/memory/bytes.h"

namespace penstock {
namespace memory {
namespace {

absl::Span<const uint8_t> Range(uintptr_t begin, size_t size) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): nobody reads there
  return {reinterpret_cast<const uint8_t*>(begin), size};
}
DeviceAccess* FindAt(uintptr_t address) {
  return FindDevice(Range(address, 1).data());
}

TEST(DeviceRanges, AreFoundAsLongAsTheyLive) {
  FakeDeviceAccess device;
  EXPECT_EQ(FindAt(0x1000), nullptr);
  {
    DeviceRange range(Range(0x1000, 0x100), &device, nullptr);
    EXPECT_EQ(FindAt(0xfff), nullptr);
    EXPECT_EQ(FindAt(0x1000), &device);
    EXPECT_EQ(FindAt(0x10ff), &device);
    EXPECT_EQ(FindAt(0x1100), nullptr);
  }
  EXPECT_EQ(FindAt(0x1000), nullptr);
}

TEST(DeviceRanges, MayOverlapAndBeTheSame) {
  FakeDeviceAccess device;
  auto first =
      std::make_unique<DeviceRange>(Range(0x1000, 0x100), &device, nullptr);
  auto second =
      std::make_unique<DeviceRange>(Range(0x1000, 0x100), &device, nullptr);
  first.reset();
  EXPECT_EQ(FindAt(0x1080), &device);
  second.reset();
  EXPECT_EQ(FindAt(0x1080), nullptr);
}

TEST(DeviceRanges, AllThatOverlapAreAsked) {
  FakeDeviceAccess device;
  int asked = 0;
  const auto count = [&asked]() -> absl::optional<absl::Status> {
    ++asked;
    return absl::OkStatus();
  };
  DeviceRange before(Range(0x0f00, 0x100), &device, count);
  DeviceRange around(Range(0x0f00, 0x1000), &device, count);
  DeviceRange within(Range(0x1010, 0x10), &device, count);
  DeviceRange behind(Range(0x1100, 0x10), &device, count);
  DeviceRange at_once(Range(0x1000, 0x100), &device, nullptr);
  EXPECT_EQ(PollDevice(Range(0x1000, 0x100)), absl::OkStatus());
  EXPECT_EQ(asked, 2);
}

TEST(DeviceRanges, AreReadyWhenAllAre) {
  FakeDeviceAccess device;
  absl::optional<absl::Status> first = absl::OkStatus(), second;
  DeviceRange a(Range(0x1000, 0x100), &device, [&first] { return first; });
  DeviceRange b(Range(0x1000, 0x100), &device, [&second] { return second; });
  EXPECT_EQ(PollDevice(Range(0x1000, 1)), absl::nullopt);
  second = absl::InternalError("lost");
  EXPECT_EQ(PollDevice(Range(0x1000, 1)), absl::InternalError("lost"));
  second = absl::OkStatus();
  EXPECT_EQ(PollDevice(Range(0x1000, 1)), absl::OkStatus());
}

// Tests a poll function that ends declarations. This is allowed because no lock
// is held.
TEST(DeviceRanges, AreAskedWithoutALock) {
  FakeDeviceAccess device;
  DeviceRange range(Range(0x1000, 0x100), &device,
                    [&device]() -> absl::optional<absl::Status> {
                      DeviceRange another(Range(0x2000, 1), &device, nullptr);
                      return FindAt(0x2000) == &device
                                 ? absl::OkStatus()
                                 : absl::InternalError("not there");
                    });
  EXPECT_EQ(PollDevice(Range(0x1000, 1)), absl::OkStatus());
}

TEST(DeviceRanges, AreWhatAListSays) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  FakeDeviceAccess device;
  struct Live {
    uintptr_t begin;
    size_t size;
    std::unique_ptr<DeviceRange> range;
  };
  std::vector<Live> live;
  for (int i = 0; i < 20000; ++i) {
    if (live.empty() || random() % 2 == 0) {
      const uintptr_t begin = 0x1000 + random() % 500;
      const size_t size = 1 + random() % (random() % 2 == 0 ? 5 : 200);
      live.push_back({begin, size,
                      std::make_unique<DeviceRange>(Range(begin, size), &device,
                                                    nullptr)});
    } else {
      live.erase(live.begin() + random() % live.size());
    }
    const uintptr_t at = 0x0f80 + random() % 900;
    bool expected = false;
    for (const Live& one : live) {
      expected |= at >= one.begin && at - one.begin < one.size;
    }
    ASSERT_EQ(FindAt(at) != nullptr, expected) << i;
  }
}

TEST(DeviceRanges, AreSafeOnSeveralThreads) {
  FakeDeviceAccess device;
  std::vector<std::thread> threads;
  for (uintptr_t t = 1; t <= 4; ++t) {
    threads.emplace_back([t, &device] {
      for (int i = 0; i < 5000; ++i) {
        DeviceRange range(Range(t << 20, 0x100), &device, nullptr);
        ASSERT_EQ(FindAt((t << 20) + 1), &device);
        ASSERT_EQ(PollDevice(Range(t << 20, 0x100)), absl::OkStatus());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Forks while another thread uses the table. The child must not wait forever
// for the table's lock.
TEST(DeviceRanges, AreThereInAChildWhoeverUsedThemAtTheFork) {
  FakeDeviceAccess device;
  DeviceRange range(Range(0x1000, 0x100), &device, nullptr);
  std::atomic<bool> ends{false};
  std::thread other([&] {
    while (!ends) DeviceRange(Range(0x2000, 1), &device, nullptr);
  });
  for (int i = 0; i < 200; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);
      _exit(FindAt(0x1000) == &device ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0) << i;
  }
  ends = true;
  other.join();
}

TEST(DeviceBytes, AreCopiedByTheirDevice) {
  FakeDeviceAccess device;
  const Bytes on_device = device.Put(std::string(100000, 'd'));
  Payload payload;
  payload.Append(*CopyBytes({reinterpret_cast<const uint8_t*>("host"), 4}));
  EXPECT_TRUE(payload.on_host());
  payload.Append(on_device.Part(1, 99999));
  EXPECT_FALSE(payload.on_host());
  std::string copy(payload.size(), '\0');
  ASSERT_TRUE(
      payload.CopyFromAnywhereTo(reinterpret_cast<uint8_t*>(&copy[0])).ok());
  EXPECT_EQ(copy, "host" + std::string(99999, 'd'));
  absl::StatusOr<Bytes> on_host = ToHost(on_device);
  ASSERT_TRUE(on_host.ok());
  EXPECT_EQ(on_host->device, nullptr);
  EXPECT_EQ(std::string(on_host->data, on_host->data + on_host->size),
            std::string(100000, 'd'));
}

TEST(DeviceBytes, SayWhyTheyCannotBeCopied) {
  FakeDeviceAccess device;
  const Bytes on_device = device.Put(std::string(100000, 'd'));
  device.FailCopies(absl::UnavailableError("lost"));
  EXPECT_EQ(ToHost(on_device).status(), absl::UnavailableError("lost"));
}

// A single test with all steps, because a process can name its devices only
// once.
TEST(DevicesOfProcess, AreNamedOnceAndBeforeWhatReliesOnThereBeingNone) {
  static FakeDeviceAccess device;
  static FakeDeviceAccess another;
  EXPECT_TRUE(absl::IsFailedPrecondition(SetDevicesOfProcess(&device)));
  EXPECT_EQ(DevicesOfProcess(), nullptr);
  PermitDevices();
  ASSERT_TRUE(SetDevicesOfProcess(&device).ok());
  EXPECT_EQ(DevicesOfProcess(), &device);
  EXPECT_TRUE(SetDevicesOfProcess(&device).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(SetDevicesOfProcess(&another)));
  EXPECT_FALSE(RelyOnNoDevices());
}

TEST(DevicesOfProcessDeathTest, CannotBeNamedLater) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        static FakeDeviceAccess device;
        PermitDevices();
        const bool relies = RelyOnNoDevices();
        const absl::Status status = SetDevicesOfProcess(&device);
        _exit(relies && absl::IsFailedPrecondition(status) ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace memory
}  // namespace penstock
