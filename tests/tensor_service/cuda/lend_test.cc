// Tests device memory that CudaMemory lends to transports. A separate program,
// because a process sets its transports' devices once.

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "grpcpp/support/slice.h"
#include "gtest/gtest.h"
#include "tensor_service/cuda/cuda_memory.h"
#include "tensor_service/tensor.h"
#include "tests/transport/device/fake_driver.h"
#include "transport/memory/device_access.h"
#include "transport/memory/device_ranges.h"

namespace penstock::tensor {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr Device kFirst = {Device::Kind::kCuda, 0};
constexpr Device kSecond = {Device::Kind::kCuda, 1};
constexpr size_t kBytes = 100000;

// Return objects that live as long as the process, as transports require.
device::FakeDriver* Driver() {
  static auto* const driver = new device::FakeDriver;
  return driver;
}
CudaMemory* Served() {
  static auto* const memory = [] {
    auto* const made = new CudaMemory(Driver());
    memory::PermitDevices();
    const absl::Status served = made->ServeTransports();
    EXPECT_TRUE(served.ok()) << served;
    EXPECT_TRUE(made->ServeTransports().ok());
    return made;
  }();
  return memory;
}

std::shared_ptr<Buffer> Filled(const Device& device, size_t bytes, char value) {
  std::shared_ptr<Buffer> buffer = *Served()->Allocate(device, bytes);
  Driver()->Write(buffer->device_address(), std::string(bytes, value));
  return buffer;
}

absl::Span<const uint8_t> RangeOf(const grpc::Slice& slice) {
  return {slice.begin(), slice.size()};
}

std::string CopyToHost(const grpc::Slice& slice) {
  std::string bytes(slice.size(), 0);
  memory::DeviceAccess* const access = memory::FindDevice(slice.begin());
  EXPECT_NE(access, nullptr);
  EXPECT_EQ(memory::PollDevice(RangeOf(slice)), absl::OkStatus());
  EXPECT_TRUE(
      access->CopyToHost(RangeOf(slice), reinterpret_cast<uint8_t*>(&bytes[0]))
          .ok());
  return bytes;
}

class LendTest : public testing::Test {
 protected:
  ~LendTest() override {
    EXPECT_THAT(Driver()->violations(), IsEmpty());
    EXPECT_THAT(Driver()->Remains(),
                testing::Not(HasSubstr("blocks of device memory")));
  }
};

// Tests a process without a transport. Must run first, because a later test
// provides a transport.
TEST_F(LendTest, WithoutATransportNothingIsLentAndSaysWhy) {
  CudaMemory memory(Driver());
  {
    std::shared_ptr<Buffer> buffer = *memory.Allocate(kFirst, kBytes);
    testing::internal::CaptureStderr();
    EXPECT_FALSE(memory.Lend(*memory.Allocate(kFirst, 1)).ok());
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
    testing::internal::CaptureStderr();
    const absl::Status early = memory.Lend(buffer).status();
    EXPECT_THAT(testing::internal::GetCapturedStderr(),
                HasSubstr("way of the host's: transports were not told"));
    EXPECT_TRUE(absl::IsFailedPrecondition(early)) << early;
    EXPECT_THAT(early.message(), HasSubstr("ServeTransports()"));

    const absl::Status none = memory.ServeTransports();
    EXPECT_TRUE(absl::IsFailedPrecondition(none)) << none;
    EXPECT_THAT(none.message(), HasSubstr("has no transport"));
    EXPECT_EQ(memory.Lend(buffer).status(), none);
    testing::internal::CaptureStderr();
    EXPECT_EQ(memory.Lend(buffer).status(), none);
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "") << "told once";
    EXPECT_EQ(memory::DevicesOfProcess(), nullptr);
  }
  // Uses the memory in all other ways. These work although the memory cannot be
  // lent.
  SetDeviceMemory(&memory);
  const Tensor here = *Tensor::Of<float>({2}, {1.f, 2.f});
  EXPECT_EQ(here.ToDevice(kSecond)->ToHost()->bytes(), here.bytes());
  SetDeviceMemory(nullptr);
}

TEST_F(LendTest, ASliceIsTheMemoryItselfAndKeepsIt) {
  for (const Device& device : {kFirst, kSecond}) {
    std::shared_ptr<Buffer> buffer = Filled(device, kBytes, 'a');
    const uintptr_t address = buffer->device_address();
    absl::StatusOr<grpc::Slice> slice = Served()->Lend(std::move(buffer));
    ASSERT_TRUE(slice.ok()) << slice.status();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(slice->begin()), address);
    EXPECT_EQ(slice->size(), kBytes);
    EXPECT_EQ(memory::FindDevice(slice->begin()), memory::DevicesOfProcess());
    EXPECT_EQ(Served()->DeviceOfSlice(slice->begin()), device);
    EXPECT_EQ(Served()->DeviceOfSlice(slice->end() - 1), device);
    EXPECT_EQ(CopyToHost(*slice), std::string(kBytes, 'a'));
    const grpc::Slice copy = *slice;
    *slice = grpc::Slice();
    EXPECT_EQ(CopyToHost(copy), std::string(kBytes, 'a'));
  }
}

TEST_F(LendTest, IsDeclaredOnlyAsLongAsASliceLives) {
  std::shared_ptr<Buffer> buffer = Filled(kFirst, kBytes, 'a');
  // NOLINTNEXTLINE(performance-no-int-to-ptr): nobody reads there
  const auto* const at = reinterpret_cast<void*>(buffer->device_address());
  EXPECT_EQ(memory::FindDevice(at), nullptr);
  {
    const grpc::Slice one = *Served()->Lend(buffer);
    { const grpc::Slice two = *Served()->Lend(buffer); }
    EXPECT_NE(memory::FindDevice(at), nullptr);
  }
  EXPECT_EQ(memory::FindDevice(at), nullptr);
  EXPECT_EQ(buffer.use_count(), 1);
  EXPECT_EQ(Served()->DeviceOfSlice(at), Device());
}

TEST_F(LendTest, TheBytesAreAwaited) {
  const device::abi::Stream kernels = Driver()->ProgramStream(0);
  std::shared_ptr<Buffer> buffer = Filled(kFirst, kBytes, 'a');
  Driver()->QueueFill(kernels, buffer->device_address(), 'b', kBytes);
  auto event =
      Served()->Record(kFirst, Stream{reinterpret_cast<uintptr_t>(kernels)});
  ASSERT_TRUE(event.ok()) << event.status();
  const uintptr_t address = buffer->device_address();
  const grpc::Slice slice =
      *Served()->Lend(Buffer::After(std::move(buffer), *std::move(event)));
  EXPECT_EQ(Driver()->Read(address, 1), "a") << "Lend() has waited";
  const auto part = RangeOf(slice).subspan(500, 1);
  EXPECT_EQ(memory::PollDevice(part), absl::nullopt);
  EXPECT_EQ(Driver()->Read(address, 1), "a") << "PollDevice() has waited";
  EXPECT_EQ(memory::PollDevice(part), absl::OkStatus());
  EXPECT_EQ(Driver()->Read(address, kBytes), std::string(kBytes, 'b'));
}

TEST_F(LendTest, AProducerThatFailsIsTheErrorOfWhoWaits) {
  std::shared_ptr<Buffer> buffer = Filled(kFirst, kBytes, 'a');
  auto event = Served()->Record(
      kFirst, Stream{reinterpret_cast<uintptr_t>(Driver()->ProgramStream(0))});
  const grpc::Slice slice =
      *Served()->Lend(Buffer::After(buffer, *std::move(event)));
  Driver()->FailAfter(1, device::abi::kOperatingSystem);
  EXPECT_TRUE(absl::IsUnavailable(*memory::PollDevice(RangeOf(slice))));
  Driver()->FailNoMore();
}

TEST_F(LendTest, WhatATransportCouldNotSendIsCopied) {
  const auto refused = [](std::shared_ptr<Buffer> buffer) {
    return absl::IsFailedPrecondition(
        Served()->Lend(std::move(buffer)).status());
  };
  EXPECT_TRUE(refused(Filled(kFirst, memory::kMinDeviceBytes - 1, 'a')));
  EXPECT_FALSE(refused(Filled(kFirst, memory::kMinDeviceBytes, 'a')));
  EXPECT_TRUE(refused(*Buffer::Allocate(kBytes)));
  // Simulates memory that the driver reports as several allocations, and memory
  // that the driver does not know.
  std::shared_ptr<Buffer> whole = Filled(kFirst, kBytes, 'a');
  EXPECT_TRUE(refused(Buffer::WrapDevice(kFirst, whole->device_address(),
                                         kBytes * 1000, true, nullptr)));
  EXPECT_TRUE(
      refused(Buffer::WrapDevice(kFirst, 0x1000, kBytes, true, nullptr)));
  EXPECT_FALSE(refused(Buffer::PartOf(whole, 100, memory::kMinDeviceBytes)));
}

TEST_F(LendTest, EachCallMayFailAndNothingIsKept) {
  std::shared_ptr<Buffer> buffer = Filled(kFirst, kBytes, 'a');
  int failed = 0;
  for (;; ++failed) {
    const int before = Driver()->calls();
    Driver()->FailAfter(failed, device::abi::kOutOfMemory);
    const absl::Status status = Served()->Lend(buffer).status();
    Driver()->FailNoMore();
    if (Driver()->calls() <= before + failed) {
      EXPECT_TRUE(status.ok()) << status;
      break;
    }
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
    EXPECT_EQ(buffer.use_count(), 1);
  }
  EXPECT_GT(failed, 1);
}

TEST_F(LendTest, ASliceOfTheHostIsTheHosts) {
  const grpc::Slice slice("text");
  EXPECT_TRUE(Served()->DeviceOfSlice(slice.begin()).is_host());
}

TEST_F(LendTest, AnotherMemoryDoesNotTakeItsPlace) {
  Served();
  CudaMemory another(Driver());
  EXPECT_TRUE(absl::IsFailedPrecondition(another.ServeTransports()));
  std::shared_ptr<Buffer> buffer = *another.Allocate(kFirst, kBytes);
  EXPECT_TRUE(absl::IsFailedPrecondition(another.Lend(buffer).status()));
}

// Tests a lost device. Must run last.
TEST_F(LendTest, ZSliceOfALostDeviceIsNotTakenForTheHosts) {
  const grpc::Slice slice = *Served()->Lend(Filled(kFirst, kBytes, 'a'));
  Driver()->Lose(device::abi::kIllegalAddress);
  const Device device = Served()->DeviceOfSlice(slice.begin());
  EXPECT_FALSE(device.is_host());
  std::string host(kBytes, 0);
  EXPECT_FALSE(
      memory::FindDevice(slice.begin())
          ->CopyToHost(RangeOf(slice), reinterpret_cast<uint8_t*>(&host[0]))
          .ok());
  EXPECT_FALSE(Served()->Lend(*Buffer::Allocate(kBytes)).ok());
}

}  // namespace
}  // namespace penstock::tensor
