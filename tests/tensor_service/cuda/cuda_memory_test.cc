#include "tensor_service/cuda/cuda_memory.h"

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tensor_service/tensor.h"
#include "tests/transport/device/fake_driver.h"

namespace penstock::tensor {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr Device kFirst = {Device::Kind::kCuda, 0};
constexpr Device kSecond = {Device::Kind::kCuda, 1};

Stream StreamOf(device::abi::Stream stream) {
  return Stream{reinterpret_cast<uintptr_t>(stream)};
}

class CudaMemoryTest : public testing::Test {
 protected:
  CudaMemoryTest() { SetDeviceMemory(memory_.get()); }
  ~CudaMemoryTest() override {
    SetDeviceMemory(nullptr);
    memory_.reset();
    EXPECT_EQ(driver_.Remains(), "");
    EXPECT_THAT(driver_.violations(), IsEmpty());
  }

  // Runs `use` repeatedly. Each run makes another driver call fail, until each
  // call has failed once. Returns the number of calls.
  template <typename Use>
  int FailEach(Use use) {
    for (int n = 0;; ++n) {
      const int before = driver_.calls();
      driver_.FailAfter(n, device::abi::kOutOfMemory);
      const absl::Status status = use();
      const bool failed = driver_.calls() > before + n;
      driver_.FailNoMore();
      if (!failed) {
        EXPECT_TRUE(status.ok()) << status;
        return n;
      }
      if (!status.ok()) {
        EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
        EXPECT_THAT(status.message(), HasSubstr("cuda:"));
      }
    }
  }

  device::FakeDriver driver_;
  std::unique_ptr<CudaMemory> memory_ = std::make_unique<CudaMemory>(&driver_);
};

TEST_F(CudaMemoryTest, TensorsGoToADeviceToAnotherAndBack) {
  const Tensor here =
      *Tensor::Of<float>({2, 3}, {1.f, 2.f, 3.f, 4.f, 5.f, 6.f});
  const Tensor first = *here.ToDevice(kFirst);
  const Tensor second = *first.ToDevice(kSecond);
  EXPECT_EQ(driver_.Read(second.buffer()->device_address(), 24), here.bytes());
  EXPECT_EQ(second.ToHost()->bytes(), here.bytes());
  EXPECT_EQ(second.device(), kSecond);
}

TEST_F(CudaMemoryTest, OnesWithoutElementsHaveMemoryToo) {
  const Tensor none = *Tensor::Of<float>({0, 3}, {});
  const absl::StatusOr<Tensor> there = none.ToDevice(kFirst);
  ASSERT_TRUE(there.ok()) << there.status();
  EXPECT_EQ(there->ToHost()->byte_size(), 0u);
}

TEST_F(CudaMemoryTest, ADeviceThatIsNotThereIsAnError) {
  for (const Device& device : {Device(), Device{Device::Kind::kCuda, 7},
                               Device{Device::Kind::kCuda, -1}}) {
    EXPECT_FALSE(memory_->Allocate(device, 8).ok());
  }
}

TEST_F(CudaMemoryTest, KnowsWhoseMemoryIsAtAnAddress) {
  const auto buffer = *memory_->Allocate(kSecond, 100);
  EXPECT_EQ(*memory_->DeviceOf(buffer->device_address() + 99), kSecond);
  int here = 0;
  EXPECT_TRUE(absl::IsInvalidArgument(
      memory_->DeviceOf(reinterpret_cast<uintptr_t>(&here)).status()));
}

TEST_F(CudaMemoryTest, ATensorIsReadOnceItsProducerHasWritten) {
  const device::abi::Stream kernels = driver_.ProgramStream(0);
  std::shared_ptr<Buffer> buffer = *memory_->Allocate(kFirst, 100);
  driver_.Write(buffer->device_address(), std::string(100, 'a'));
  driver_.QueueFill(kernels, buffer->device_address(), 'b', 100);
  auto event = memory_->Record(kFirst, StreamOf(kernels));
  ASSERT_TRUE(event.ok()) << event.status();
  const Tensor tensor =
      *Tensor::FromBuffer(DType::kInt8, {100}, Buffer::After(buffer, *event));
  EXPECT_EQ(tensor.ToHost()->bytes(), std::string(100, 'b'));
}

TEST_F(CudaMemoryTest, WhetherAnEventHasComeIsAskedWithoutAWait) {
  const device::abi::Stream kernels = driver_.ProgramStream(0);
  const std::shared_ptr<Buffer> buffer = *memory_->Allocate(kFirst, 8);
  driver_.Write(buffer->device_address(), "aaaaaaaa");
  driver_.QueueFill(kernels, buffer->device_address(), 'b', 8);
  const auto event = memory_->Record(kFirst, StreamOf(kernels));
  ASSERT_TRUE(event.ok()) << event.status();
  absl::StatusOr<bool> came = memory_->HasCompleted(**event);
  ASSERT_TRUE(came.ok()) << came.status();
  EXPECT_FALSE(*came);
  EXPECT_EQ(driver_.Read(buffer->device_address(), 8), "aaaaaaaa");
  while (came.ok() && !*came) came = memory_->HasCompleted(**event);
  EXPECT_TRUE(came.ok()) << came.status();
  EXPECT_EQ(driver_.Read(buffer->device_address(), 8), "bbbbbbbb");
  driver_.FailAfter(0, device::abi::kOutOfMemory);
  EXPECT_FALSE(memory_->HasCompleted(**event).ok());
  driver_.FailNoMore();
}

TEST_F(CudaMemoryTest, AStreamCanWaitForAnother) {
  const device::abi::Stream producer = driver_.ProgramStream(0);
  const device::abi::Stream consumer = driver_.ProgramStream(1);
  std::shared_ptr<Buffer> one = *memory_->Allocate(kFirst, 8);
  std::shared_ptr<Buffer> two = *memory_->Allocate(kSecond, 8);
  driver_.QueueFill(producer, one->device_address(), 'p', 8);
  auto event = memory_->Record(kFirst, StreamOf(producer));
  ASSERT_TRUE(memory_->Order(**event, kSecond, StreamOf(consumer)).ok());
  driver_.QueueFill(consumer, two->device_address(), 'c', 8);
  auto last = memory_->Record(kSecond, StreamOf(consumer));
  ASSERT_TRUE(memory_->Await(**last).ok());
  EXPECT_EQ(driver_.Read(one->device_address(), 8), "pppppppp");
  EXPECT_EQ(driver_.Read(two->device_address(), 8), "cccccccc");
}

TEST_F(CudaMemoryTest, AStreamThatIsCapturedIsRefused) {
  const device::abi::Stream captured = driver_.ProgramStream(0);
  const device::abi::Stream other = driver_.ProgramStream(0);
  driver_.BeginCapture(captured);
  const auto recorded = memory_->Record(kFirst, StreamOf(captured));
  EXPECT_TRUE(absl::IsFailedPrecondition(recorded.status()))
      << recorded.status();
  EXPECT_THAT(recorded.status().message(), HasSubstr("outside of the capture"));
  const auto event = memory_->Record(kFirst, StreamOf(other));
  ASSERT_TRUE(event.ok()) << event.status();
  EXPECT_TRUE(absl::IsFailedPrecondition(
      memory_->Order(**event, kFirst, StreamOf(captured))));
  driver_.EndCapture(captured);
  EXPECT_TRUE(memory_->Order(**event, kFirst, StreamOf(captured)).ok());
}

TEST_F(CudaMemoryTest, StreamZeroIsRefusedAndAStreamOfAnotherDevice) {
  EXPECT_THAT(memory_->Record(kFirst, Stream{0}).status().message(),
              HasSubstr("say 1"));
  const device::abi::Stream other = driver_.ProgramStream(1);
  EXPECT_TRUE(absl::IsInvalidArgument(
      memory_->Record(kFirst, StreamOf(other)).status()));
}

TEST_F(CudaMemoryTest, RandomBatchesOverTwoDevices) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 30; ++round) {
    std::vector<std::shared_ptr<Buffer>> buffers;
    std::vector<std::string> wanted;
    std::vector<std::string> got;
    std::vector<CopyFromHost> in;
    std::vector<CopyToHost> out;
    const int count = 1 + random() % 10;
    for (int i = 0; i < count; ++i) {
      const size_t size = 1 + random() % (i % 3 == 0 ? 1500000 : 500);
      buffers.push_back(
          *memory_->Allocate(random() % 2 == 0 ? kFirst : kSecond, size + 3));
      wanted.emplace_back(size, static_cast<char>(random()));
      wanted.back()[random() % size] ^= 1;
      got.emplace_back(size, 0);
    }
    for (int i = 0; i < count; ++i) {
      in.push_back({wanted[i].data(), wanted[i].size(), buffers[i].get(), 3});
      out.push_back({buffers[i].get(), 3, got[i].size(), &got[i][0]});
    }
    ASSERT_TRUE(memory_->Copy(in).ok());
    ASSERT_TRUE(memory_->Copy(out).ok());
    ASSERT_TRUE(got == wanted);
  }
}

TEST_F(CudaMemoryTest, AnyCallMayFailAndNothingStays) {
  const Tensor here = *Tensor::Of<float>({3}, {1.f, 2.f, 3.f});
  const int calls = FailEach([&]() -> absl::Status {
    // Makes an object, which also opens the devices.
    memory_ = std::make_unique<CudaMemory>(&driver_);
    SetDeviceMemory(memory_.get());
    absl::StatusOr<Tensor> there = here.ToDevice(kFirst);
    if (there.ok()) there = there->ToDevice(kSecond);
    if (there.ok()) there = there->ToHost();
    if (there.ok()) {
      EXPECT_EQ(there->bytes(), here.bytes());
    }
    return there.status();
  });
  EXPECT_GT(calls, 30);
}

TEST(CudaMemory, AMachineWithoutADriverSaysWhatIsMissing) {
  const absl::StatusOr<DeviceMemory*> memory = CudaMemory::OfProcess();
  if (memory.ok()) GTEST_SKIP() << "there is a CUDA driver here";
  EXPECT_FALSE(memory.status().message().empty());
  EXPECT_EQ(CudaMemory::OfProcess().status(), memory.status());
}

}  // namespace
}  // namespace penstock::tensor
