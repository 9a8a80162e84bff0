// Tests operands on a simulated GPU, against the same functions of the host.

#include "collectives/cuda/cuda_operands.h"

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>

#include "collectives/operand_memory.h"
#include "collectives/reduction/reduction.h"
#include "gtest/gtest.h"
#include "tensor_service/dtype.h"
#include "tests/ps/optim/random_values.h"
#include "tests/transport/device/fake_driver.h"
#include "transport/device/devices.h"
#include "transport/device/handles.h"
#include "transport/device/kernels/fatbin.h"

namespace penstock::collectives {
namespace {

using tensor::DType;

constexpr size_t kBytes = 16 * 1024;

class CudaOperandsTest : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = CudaOperands::Open(&devices_, 0);
    ASSERT_TRUE(opened.ok()) << opened.status();
    operands_ = *std::move(opened);
    block_ = *device::AllocateOnDevice((*devices_.At(0))->device.get(), kBytes);
  }
  void TearDown() override { EXPECT_TRUE(driver_.violations().empty()); }

  void* there(size_t offset = 0) const {
    return reinterpret_cast<void*>(block_.get() + offset);
  }
  std::string RandomBytes() {
    std::string bytes(kBytes, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random_());
    return bytes;
  }

  std::mt19937_64 random_{ps::optim::NewSeed()};
  device::FakeDriver driver_;
  device::Devices devices_{&driver_, 0};
  std::unique_ptr<CudaOperands> operands_;
  device::DeviceBlock block_;
};

TEST_F(CudaOperandsTest, AreFoundByTheirAddress) {
  EXPECT_TRUE(*operands_->Has(there()));
  EXPECT_TRUE(*operands_->Has(there(kBytes - 1)));
  const auto other =
      *device::AllocateOnDevice((*devices_.At(1))->device.get(), 64);
  EXPECT_FALSE(*operands_->Has(&block_));
  EXPECT_FALSE(*operands_->Has(nullptr));
  OperandMemory* const memories[] = {operands_.get()};
  EXPECT_EQ(*MemoryOf(memories, there()), operands_.get());
  EXPECT_EQ(*MemoryOf(memories, &block_), HostMemory());
  EXPECT_EQ(
      MemoryOf(memories, reinterpret_cast<void*>(other.get())).status(),
      absl::InvalidArgumentError(
          "the operand is in the memory of GPU 1: add its CudaOperands to "
          "NetGroupOptions::memories"));
}

// Tests that no failure of the driver makes the CPU touch a device's memory.
TEST_F(CudaOperandsTest, AreNotTakenForTheHostsIfTheDriverFails) {
  OperandMemory* const memories[] = {operands_.get()};
  int failed = 0;
  for (int after = 0; after < 10; ++after) {
    driver_.FailAfter(after, device::abi::kOutOfMemory);
    const auto memory = MemoryOf(memories, there());
    driver_.FailNoMore();
    if (memory.ok()) {
      EXPECT_EQ(*memory, operands_.get()) << after;
    } else {
      ++failed;
    }
  }
  EXPECT_GT(failed, 0);
}

// Uses integers, because random bytes of floats may be NaN with different
// payloads.
TEST_F(CudaOperandsTest, AreReducedLikeTheHosts) {
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16, DType::kF64,
                            DType::kInt32, DType::kUint8}) {
    for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMax}) {
      for (const bool is_right : {false, true}) {
        for (const size_t offset : {size_t{0}, size_t{8}, size_t{1}}) {
          const size_t count = (kBytes - 8) / tensor::ElementSize(dtype) - 1;
          std::string received = RandomBytes();
          std::string data = RandomBytes();
          // Makes the exponents of all floats small, so that none is NaN.
          for (size_t i = 0; i < kBytes; ++i) {
            received[i] = static_cast<char>(received[i] & 0x3F);
            data[i] = static_cast<char>(data[i] & 0x3F);
          }
          driver_.Write(block_.get(), data);
          ASSERT_TRUE(operands_
                          ->Reduce(op, dtype, received.data(), is_right,
                                   there(offset), count)
                          .ok());
          ASSERT_TRUE(HostMemory()
                          ->Reduce(op, dtype, received.data(), is_right,
                                   &data[offset], count)
                          .ok());
          EXPECT_EQ(driver_.Read(block_.get(), kBytes), data)
              << tensor::Name(dtype) << " " << Name(op) << " at " << offset;
        }
      }
    }
  }
}

TEST_F(CudaOperandsTest, SumsOfFloatsRunOnTheDevice) {
  const int before = driver_.CallsOf("LaunchKernel");
  const std::string received(kBytes, '\0');
  ASSERT_TRUE(operands_
                  ->Reduce(ReduceOp::kSum, DType::kF32, received.data(), false,
                           there(), kBytes / 4)
                  .ok());
  const bool has_kernels = device::kernels::Fatbin().ok();
  EXPECT_EQ(driver_.CallsOf("LaunchKernel") - before, has_kernels ? 1 : 0);
}

TEST_F(CudaOperandsTest, AreCopiedAndDivided) {
  std::string data = RandomBytes();
  for (char& byte : data) byte = static_cast<char>(byte & 0x3F);
  ASSERT_TRUE(operands_->CopyFromHost(data.data(), there(), kBytes).ok());
  ASSERT_TRUE(operands_->Copy(there(), there(kBytes / 2), kBytes / 2).ok());
  data.replace(kBytes / 2, kBytes / 2, data, 0, kBytes / 2);
  ASSERT_TRUE(operands_->Divide(DType::kF32, there(), 3, kBytes / 4).ok());
  ASSERT_TRUE(HostMemory()->Divide(DType::kF32, &data[0], 3, kBytes / 4).ok());
  std::string got(kBytes, '\0');
  ASSERT_TRUE(operands_->CopyToHost(there(), &got[0], kBytes).ok());
  EXPECT_EQ(got, data);
}

TEST_F(CudaOperandsTest, EachFailureIsAnErrorAndTheNextReductionWorks) {
  const std::string received(kBytes, '\0');
  const auto reduce = [&] {
    return operands_->Reduce(ReduceOp::kSum, DType::kF32, received.data(),
                             false, there(), kBytes / 4);
  };
  int failed = 0;
  for (int after = 0; after < 40; ++after) {
    driver_.FailAfter(after, device::abi::kOutOfMemory);
    failed += reduce().ok() ? 0 : 1;
    driver_.FailNoMore();
    ASSERT_TRUE(reduce().ok()) << after;
  }
  EXPECT_GT(failed, 3);
}

}  // namespace
}  // namespace penstock::collectives
