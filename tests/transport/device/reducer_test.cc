#include "transport/device/reducer.h"

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/transport/device/fake_driver.h"
#include "transport/device/kernels/reduce_on_host.h"

namespace penstock {
namespace device {
namespace {

using kernels::ElementType;
using kernels::Operation;
using kernels::Reduction;

class ReducerTest : public testing::Test {
 protected:
  void SetUp() override {
    device_ = *Device::Open(&driver_, 0);
    auto reducer = Reducer::Create(device_.get());
    if (absl::IsUnimplemented(reducer.status())) {
      GTEST_SKIP() << reducer.status();
    }
    ASSERT_TRUE(reducer.ok()) << reducer.status();
    reducer_ = *std::move(reducer);
    stream_ = driver_.ProgramStream(0);
  }
  void TearDown() override {
    reducer_.reset();
    blocks_.clear();
    device_.reset();
    EXPECT_EQ(driver_.Remains(), "");
    EXPECT_TRUE(driver_.violations().empty());
  }

  abi::Address OnDevice(const std::string& bytes) {
    blocks_.push_back(*AllocateOnDevice(device_.get(), bytes.size()));
    driver_.Write(blocks_.back().get(), bytes);
    return blocks_.back().get();
  }
  static void* At(abi::Address address) {
    return reinterpret_cast<void*>(address);
  }

  FakeDriver driver_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Reducer> reducer_;
  std::vector<DeviceBlock> blocks_;
  abi::Stream stream_ = nullptr;
};

TEST_F(ReducerTest, IsQueuedInTheStreamAndHasTheHostsBits) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 50; ++round) {
    Reduction reduction;
    reduction.operation = static_cast<Operation>(random() % 3);
    reduction.type = static_cast<ElementType>(random() % 3);
    reduction.count = random() % 3000;
    reduction.scale = 0.37f;
    const size_t fan_in =
        reduction.operation == Operation::kScaledAdd ? 1 : 1 + random() % 8;
    const size_t bytes =
        reduction.count * kernels::ElementBytes(reduction.type);
    std::vector<std::string> arrays(fan_in + 1, std::string(bytes + 1, 0));
    std::vector<const void*> here;
    std::vector<const void*> there;
    for (std::string& array : arrays) {
      for (char& byte : array) byte = static_cast<char>(random());
      here.push_back(array.data());
      there.push_back(At(OnDevice(array)));
    }
    const std::string before = arrays.back();
    const auto output = reinterpret_cast<abi::Address>(there.back());
    reduction.inputs = absl::MakeConstSpan(there).first(fan_in);
    reduction.output = At(output);
    ASSERT_TRUE(reducer_->Queue(reduction, stream_).ok());
    EXPECT_EQ(driver_.Read(output, bytes + 1), before) << "it has waited";
    ASSERT_EQ(driver_.StreamSynchronize(stream_), abi::kSuccess);

    reduction.inputs = absl::MakeConstSpan(here).first(fan_in);
    reduction.output = &arrays.back()[0];
    ASSERT_TRUE(kernels::ReduceOnHost(reduction).ok());
    ASSERT_EQ(driver_.Read(output, bytes + 1), arrays.back());
    blocks_.clear();
  }
}

TEST_F(ReducerTest, WhatIsNoReductionIsRefusedBeforeTheDriverIsAsked) {
  Reduction reduction;
  reduction.count = 10;
  const int calls = driver_.calls();
  EXPECT_TRUE(absl::IsInvalidArgument(reducer_->Queue(reduction, stream_)));
  EXPECT_EQ(driver_.calls(), calls);
}

TEST_F(ReducerTest, AnyCallMayFailAndTheNextReductionWorks) {
  const abi::Address at = OnDevice(std::string(400, 'a'));
  const std::vector<const void*> inputs = {At(at)};
  Reduction reduction;
  reduction.count = 100;
  reduction.inputs = inputs;
  reduction.output = At(at);
  for (int n = 0; n < 3; ++n) {
    driver_.FailAfter(n, abi::kOutOfMemory);
    (void)reducer_->Queue(reduction, stream_);
    driver_.FailNoMore();
    EXPECT_TRUE(reducer_->Queue(reduction, stream_).ok());
  }
  driver_.FailAfter(1, abi::kNoBinaryForGpu);
  const auto other = Reducer::Create(device_.get());
  EXPECT_TRUE(absl::IsUnimplemented(other.status())) << other.status();
}

}  // namespace
}  // namespace device
}  // namespace penstock
