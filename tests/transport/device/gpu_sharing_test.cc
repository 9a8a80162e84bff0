// Shares device memory between processes, with network devices, and between
// devices, on real hardware. Skips itself without a GPU, as gpu_test does.

#include <sys/types.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/process/child.h"
#include "tests/transport/device/sum_of.h"
#include "transport/device/devices.h"
#include "transport/device/handles.h"
#include "transport/device/library.h"
#include "transport/device/process_devices.h"
#include "transport/device/survey.h"

namespace penstock {
namespace device {
namespace {

using process::Child;

using testing::StartsWith;

bool IsRequired() {
  const char* const value = std::getenv("PENSTOCK_TEST_GPU");
  return value != nullptr && absl::string_view(value) == "required";
}

std::string RandomBytes(std::mt19937* random, size_t size) {
  std::string bytes(size, 0);
  for (char& byte : bytes) byte = static_cast<char>((*random)());
  return bytes;
}

uint8_t* DataOf(std::string* bytes) {
  return reinterpret_cast<uint8_t*>(&(*bytes)[0]);
}

class GpuSharingTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto api = OpenLibrary();
    if (!api.ok() && !IsRequired()) GTEST_SKIP() << api.status();
    ASSERT_TRUE(api.ok()) << api.status();
    const auto survey = LookAtDevices(*api);
    ASSERT_TRUE(survey.ok()) << survey.status();
    survey_ = *survey;
    devices_ = std::make_unique<Devices>(*api, uint64_t{1} << 30);
    access_ = std::make_unique<ProcessDevices>(devices_.get());
    std::cout << survey_.devices.size() << " devices, driver of CUDA "
              << survey_.version << ", seed " << seed_ << "\n";
  }

  // Starts the other process by exec, since CUDA does not survive a fork. The
  // new process inherits nothing.
  static std::unique_ptr<Child> StartPeer() {
    return Child::Start({"tests/transport/device/gpu_peer"});
  }
  static std::string Ask(Child* peer, const std::string& question) {
    peer->Tell(absl::StrCat(question, "\n"));
    const auto answer = peer->Find("");
    return answer.has_value() ? *answer : peer->Fate();
  }
  static std::string NameOf(const memory::SharedAllocation& shared) {
    return absl::StrCat(absl::BytesToHexString(shared.handle), " ",
                        shared.size);
  }

  absl::Span<const uint8_t> OnDevice(std::string bytes, int device = 0) {
    OpenDevice* const open = *devices_->At(device);
    auto block = AllocateOnDevice(open->device.get(), bytes.size());
    EXPECT_TRUE(block.ok()) << block.status();
    // NOLINTNEXTLINE(performance-no-int-to-ptr): it is one
    auto* const data = reinterpret_cast<uint8_t*>(block->get());
    blocks_.push_back(*std::move(block));
    EXPECT_TRUE(
        access_->CopyFromHost({DataOf(&bytes), bytes.size()}, data).ok());
    return {data, bytes.size()};
  }
  std::string ToHost(absl::Span<const uint8_t> range) {
    std::string bytes(range.size(), 0);
    const absl::Status copied = access_->CopyToHost(range, DataOf(&bytes));
    EXPECT_TRUE(copied.ok()) << copied;
    return bytes;
  }

  const unsigned seed_ = std::random_device()();
  std::mt19937 random_{seed_};
  Survey survey_;
  std::unique_ptr<Devices> devices_;
  std::vector<DeviceBlock> blocks_;
  std::unique_ptr<ProcessDevices> access_;
};

TEST_F(GpuSharingTest, AnotherProcessReadsAndWritesWhatIsSharedWithIt) {
  const auto peer = StartPeer();
  ASSERT_NE(peer, nullptr);
  for (const size_t size : {size_t{65536}, (size_t{5} << 20) + 3}) {
    std::string bytes = RandomBytes(&random_, size);
    const auto range = OnDevice(bytes);
    const auto shared = access_->Share(range.subspan(1000));
    ASSERT_TRUE(shared.ok()) << shared.status();
    EXPECT_EQ(shared->offset, 1000) << "an allocation of its own was expected";
    EXPECT_EQ(Ask(peer.get(), absl::StrCat("sum ", NameOf(*shared), " ",
                                           shared->offset, " ", size - 1000)),
              absl::StrCat("sum ", SumOf(bytes.substr(1000))));
    EXPECT_EQ(Ask(peer.get(), absl::StrCat("fill ", NameOf(*shared), " ",
                                           shared->offset, " 500 120")),
              "filled");
    bytes.replace(1000, 500, std::string(500, 'x'));
    EXPECT_TRUE(ToHost(range) == bytes);
  }
  EXPECT_EQ(peer->Finish(), 0);
}

TEST_F(GpuSharingTest, WhatTheOtherSharesIsOpenedOnceHere) {
  const auto peer = StartPeer();
  ASSERT_NE(peer, nullptr);
  const std::string answer = Ask(peer.get(), "share 3000000 121");
  ASSERT_THAT(answer, StartsWith("shared "));
  const std::vector<std::string> words = absl::StrSplit(answer, ' ');
  const std::string handle = absl::HexStringToBytes(words[1]);
  const uint64_t size = std::stoull(words[2]);
  auto one = access_->Open(handle, size);
  const auto two = access_->Open(handle, size);
  ASSERT_TRUE(one.ok() && two.ok()) << one.status() << two.status();
  EXPECT_EQ(one->data, two->data);
  one->owner.reset();
  EXPECT_TRUE(ToHost({two->data + std::stoull(words[3]), 3000000}) ==
              std::string(3000000, 'y'));
  EXPECT_FALSE(access_->Share({two->data, 1}).ok());
  EXPECT_FALSE(access_->Open(handle, size + (size_t{64} << 20)).ok());
}

TEST_F(GpuSharingTest, OfAProcessThatWasKilledNothingIsOpened) {
  const auto peer = StartPeer();
  ASSERT_NE(peer, nullptr);
  const std::string answer = Ask(peer.get(), "share 3000000 121");
  ASSERT_THAT(answer, StartsWith("shared "));
  const std::vector<std::string> words = absl::StrSplit(answer, ' ');
  peer->Kill();
  const auto begin = std::chrono::steady_clock::now();
  const auto open =
      access_->Open(absl::HexStringToBytes(words[1]), std::stoull(words[2]));
  EXPECT_FALSE(open.ok());
  std::cout << "the driver says: " << open.status() << "\n";
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
  EXPECT_EQ(ToHost(OnDevice("and goes on")), "and goes on");
}

TEST_F(GpuSharingTest, AHandleOfGarbageIsAnErrorAndNothingIsLost) {
  const auto range = OnDevice(std::string(100000, 'x'));
  const auto shared = access_->Share(range);
  ASSERT_TRUE(shared.ok()) << shared.status();
  for (int round = 0; round < 20; ++round) {
    std::string handle = shared->handle;
    for (size_t at = 41; at < handle.size(); ++at) {
      handle[at] = static_cast<char>(random_());
    }
    EXPECT_FALSE(access_->Open(handle, shared->size).ok());
  }
  EXPECT_EQ(ToHost(OnDevice("and goes on")), "and goes on");
}

TEST_F(GpuSharingTest, ItsOwnIsWhereItLiesUntilItIsFreed) {
  const auto range = OnDevice(std::string(100000, 'x'));
  const auto shared = access_->Share(range);
  ASSERT_TRUE(shared.ok()) << shared.status();
  {
    const auto open = access_->Open(shared->handle, shared->size);
    ASSERT_TRUE(open.ok()) << open.status();
    EXPECT_EQ(open->data + shared->offset, range.data());
  }
  blocks_.clear();
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(access_->Open(shared->handle, shared->size).ok());
    OnDevice(std::string(100000, 'y'));
  }
}

TEST_F(GpuSharingTest, NetworkDevicesGetADescriptorWhereTheDeviceHasOne) {
  const auto range = OnDevice(std::string(5 << 20, 'x'));
  for (const size_t begin : {size_t{0}, size_t{1000}, size_t{1} << 20}) {
    const auto part = range.subspan(begin, 100000);
    const auto dmabuf = access_->ExportDmabuf(part);
    if (!survey_.devices[0].has_dma_buf) {
      EXPECT_TRUE(absl::IsFailedPrecondition(dmabuf.status()));
      GTEST_SKIP() << "NOT RUN: " << dmabuf.status();
    }
    ASSERT_TRUE(dmabuf.ok()) << dmabuf.status();
    EXPECT_EQ(dmabuf->offset,
              reinterpret_cast<uintptr_t>(part.data()) %
                  static_cast<uintptr_t>(sysconf(_SC_PAGESIZE)));
    const off_t size = lseek(dmabuf->fd.get(), 0, SEEK_END);
    EXPECT_GE(size, static_cast<off_t>(dmabuf->offset + part.size()));
  }
}

TEST_F(GpuSharingTest, OneDeviceCopiesToAnother) {
  if (survey_.devices.size() < 2) {
    GTEST_SKIP() << "NOT RUN: peer access takes two devices, and here is one";
  }
  const std::string bytes = RandomBytes(&random_, (9 << 20) + 5);
  const auto from = OnDevice(bytes, 0);
  const auto to = OnDevice(std::string(bytes.size(), 0), 1);
  OpenDevice* const first = *devices_->At(0);
  OpenDevice* const second = *devices_->At(1);
  const DeviceCopy copy{reinterpret_cast<abi::Address>(from.data()),
                        reinterpret_cast<abi::Address>(to.data()),
                        bytes.size()};
  for (int i = 0; i < 2; ++i) {
    const absl::Status copied =
        first->copier.OnDevice(second->device.get(), {copy}, {});
    ASSERT_TRUE(copied.ok()) << copied;
    EXPECT_TRUE(ToHost(to) == bytes);
  }
  int can = 0;
  (void)first->device->api()->DeviceCanAccessPeer(&can, first->device->id(),
                                                  second->device->id());
  std::cout << "the first " << (can != 0 ? "reaches" : "does not reach")
            << " the second\n";
}

}  // namespace
}  // namespace device
}  // namespace penstock
