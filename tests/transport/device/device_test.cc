#include "transport/device/device.h"

#include <memory>
#include <string>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/transport/device/fake_driver.h"
#include "transport/device/handles.h"
#include "transport/device/library.h"
#include "transport/device/survey.h"

namespace penstock {
namespace device {
namespace {

using testing::HasSubstr;

TEST(DeviceTest, SaysWhatItIs) {
  FakeDriver driver;
  auto device = Device::Open(&driver, 1);
  ASSERT_TRUE(device.ok()) << device.status();
  EXPECT_EQ((*device)->ToString(), "cuda:1");
  EXPECT_EQ((*device)->traits().name, "Fake GPU");
  EXPECT_EQ((*device)->traits().uuid,
            "GPU-02020202-0202-0202-0202-020202020202");
  EXPECT_EQ((*device)->traits().pci_address, "0001:10:01.0");
}

TEST(DeviceTest, OneThatIsNotThereIsNotFound) {
  FakeDriver driver(/*devices=*/1);
  for (int ordinal : {-1, 1, 1000}) {
    auto device = Device::Open(&driver, ordinal);
    EXPECT_TRUE(absl::IsNotFound(device.status())) << device.status();
    EXPECT_THAT(device.status().message(), HasSubstr("nvidia-smi -L"));
  }
  EXPECT_EQ(driver.Remains(), "");
}

TEST(SurveyTest, LooksAtAllDevicesAndMakesNoContext) {
  FakeDriver driver(/*devices=*/3);
  const auto survey = LookAtDevices(&driver);
  ASSERT_TRUE(survey.ok()) << survey.status();
  EXPECT_EQ(survey->version, 12040);
  ASSERT_EQ(survey->devices.size(), 3);
  EXPECT_EQ(survey->devices[2].pci_address, "0001:11:01.0");
  EXPECT_TRUE(survey->devices[2].has_dma_buf);
  EXPECT_EQ(driver.Remains(), "");
  EXPECT_EQ(driver.CallsOf("DevicePrimaryCtxRetain"), 0);
}

TEST(DeviceTest, TheContextIsThePreviousOneAgainAfterwards) {
  FakeDriver driver;
  auto first = Device::Open(&driver, 0);
  auto second = Device::Open(&driver, 1);
  ASSERT_TRUE(first.ok() && second.ok());
  auto outer = (*first)->Enter();
  ASSERT_TRUE(outer.ok());
  { auto block = AllocateOnDevice(second->get(), 8); }
  abi::Context current = nullptr;
  ASSERT_EQ(driver.CtxPopCurrent(&current), abi::kSuccess);
  EXPECT_EQ(current, (*first)->context());
  ASSERT_EQ(driver.CtxPushCurrent(current), abi::kSuccess);
}

TEST(DeviceTest, EveryCallThatFailsIsAnErrorThatNamesItAndLeaksNothing) {
  FakeDriver counting;
  { ASSERT_TRUE(Device::Open(&counting, 0).ok()); }
  for (int i = 0; i < counting.calls(); ++i) {
    FakeDriver driver;
    driver.FailAfter(i, abi::kOutOfMemory);
    {
      auto device = Device::Open(&driver, 0);
      // Accepts success, because an attribute that cannot be read counts as
      // absent.
      if (!device.ok()) {
        EXPECT_TRUE(absl::IsResourceExhausted(device.status()));
        EXPECT_THAT(device.status().message(),
                    HasSubstr("on cuda:0: CUDA_ERROR_OUT_OF_MEMORY; free"));
      }
    }
    EXPECT_EQ(driver.Remains(), "");
  }
}

TEST(DeviceTest, AStickyErrorIsRememberedAndTheFirstOneStays) {
  FakeDriver driver;
  auto device = Device::Open(&driver, 0);
  ASSERT_TRUE(device.ok());
  auto block = AllocateOnDevice(device->get(), 8);
  ASSERT_TRUE(block.ok());
  driver.FailAfter(1, abi::kIllegalAddress);
  auto failed = AllocateOnDevice(device->get(), 8);
  EXPECT_TRUE(absl::IsUnavailable(failed.status())) << failed.status();
  EXPECT_THAT(failed.status().message(), HasSubstr("compute-sanitizer"));
  // Expects the error although the driver would now succeed. After an error,
  // the device's memory cannot be trusted.
  EXPECT_EQ(CreateStream(device->get()).status(), failed.status());
  (void)(*device)->Check(abi::kLaunchFailed, "launch");
  EXPECT_EQ((*device)->Enter().status(), failed.status());
}

TEST(DeviceTest, WhatIsLargerThanItsMemoryIsResourceExhausted) {
  FakeDriver driver(1, /*bytes_of_each=*/1000);
  auto device = Device::Open(&driver, 0);
  ASSERT_TRUE(device.ok());
  auto block = AllocateOnDevice(device->get(), 600);
  ASSERT_TRUE(block.ok());
  EXPECT_TRUE(
      absl::IsResourceExhausted(AllocateOnDevice(device->get(), 600).status()));
  *block = DeviceBlock();
  EXPECT_TRUE(AllocateOnDevice(device->get(), 600).ok());
}

TEST(DeviceTest, HandlesAreDestroyedOnAnyThreadAndOnce) {
  FakeDriver driver;
  auto device = Device::Open(&driver, 0);
  ASSERT_TRUE(device.ok());
  auto block = AllocateOnDevice(device->get(), 8);
  auto stream = CreateStream(device->get());
  auto event = CreateEvent(device->get());
  ASSERT_TRUE(block.ok() && stream.ok() && event.ok());
  DeviceBlock moved = *std::move(block);
  std::thread([&] {
    { DeviceBlock gone = std::move(moved); }
    *stream = Stream();
    *event = Event();
  }).join();
  device->reset();
  EXPECT_EQ(driver.Remains(), "");
  EXPECT_EQ(driver.CallsOf("MemFree"), 1);
}

TEST(DeviceTest, WhatIsMadeAndDestroyedSpoilsNoCapture) {
  FakeDriver driver;
  const abi::Stream captured = driver.ProgramStream(0);
  driver.BeginCapture(captured);
  {
    auto device = Device::Open(&driver, 0);
    ASSERT_TRUE(device.ok()) << device.status();
    auto block = AllocateOnDevice(device->get(), 8);
    auto pinned = AllocatePinned(device->get(), 8);
    auto event = CreateEvent(device->get());
    EXPECT_TRUE(block.ok() && pinned.ok() && event.ok());
    // Shows that the driver refuses EventQuery() if a program calls it
    // directly.
    EXPECT_EQ(driver.EventQuery(event->get()), abi::kStreamCaptureUnsupported);
  }
  driver.EndCapture(captured);
  EXPECT_EQ(driver.Remains(), "");
  EXPECT_THAT(driver.violations(),
              testing::ElementsAre("EventQuery while a graph is captured"));
}

// Opens the driver, if this machine has one. Must not crash on any machine.
TEST(LibraryTest, AMachineWithoutADriverSaysSoEachTime) {
  const auto opened = OpenLibrary();
  if (opened.ok()) GTEST_SKIP() << "there is a CUDA driver here";
  EXPECT_FALSE(opened.status().message().empty());
  EXPECT_EQ(OpenLibrary().status(), opened.status());
  if (absl::IsNotFound(opened.status())) {
    EXPECT_THAT(opened.status().message(),
                testing::AnyOf(HasSubstr("it comes with NVIDIA's driver"),
                               HasSubstr("CUDA_VISIBLE_DEVICES")));
  }
}

}  // namespace
}  // namespace device
}  // namespace penstock
