// Tests bench/tensors with two simulated devices: checks bytes, not times.

#include "bench/tensors/device_steps.h"

#include <cstdint>
#include <string>

#include "bench/tensors/models.h"
#include "bench/tensors/system.h"
#include "gtest/gtest.h"
#include "tensor_service/codec.h"
#include "tensor_service/device_memory.h"
#include "tests/tensor_service/fake_device.h"

namespace penstock::bench {
namespace {

constexpr tensor::Device kFirst = {tensor::Device::Kind::kCuda, 0};
constexpr tensor::Device kSecond = {tensor::Device::Kind::kCuda, 1};

class DeviceSteps : public testing::Test {
 protected:
  DeviceSteps() {
    SetDeviceMemory(&devices_);
    devices_.LetLend();
    const Model model = *ParseModel("m", "a 100 1000\nb 3\nc 50 1000\n");
    here_ = *MakeVariables(model, tensor::HeapAllocator());
    there_ = *OnDevice(here_, kFirst);
  }
  ~DeviceSteps() override {
    there_ = {};
    tensor::SetDeviceMemory(nullptr);
    EXPECT_EQ(devices_.allocations(), 0u);
  }

  tensor::FakeDevices devices_{2};
  tensor::Bundle here_;
  tensor::Bundle there_;
};

TEST_F(DeviceSteps, AReceiverHasTheBytesInMemoryOfItsOwn) {
  DeviceReceiver receiver(kSecond);
  const uint64_t sum = *SumAnywhere(here_);
  EXPECT_EQ(*SumAnywhere(there_), sum);
  for (const tensor::Bundle* bundle : {&there_, &here_}) {
    for (const char* header : {kReadBack, ""}) {
      const int64_t begin_ns = MonotonicNs();
      const auto received = receiver.Receive(*tensor::Encode(*bundle, header));
      ASSERT_TRUE(received.ok()) << received.status();
      EXPECT_GE(received->handed_ns, begin_ns);
      EXPECT_GE(received->read_ns, received->handed_ns);
      EXPECT_EQ(received->on_device_bytes, bundle == &there_ ? 600000u : 0u);
      EXPECT_EQ(received->has_sum, *header != 0);
      EXPECT_EQ(received->sum, received->has_sum ? sum : 0);
    }
  }
  // Makes a message with one more tensor than the last one, and a truncated
  // message.
  there_.tensors.push_back({"d", there_.tensors[0].tensor});
  EXPECT_EQ(receiver.Receive(*tensor::Encode(there_, kReadBack))->sum,
            *SumAnywhere(there_));
  const grpc::Slice cut(std::string("\x0a\x7f"));
  EXPECT_FALSE(receiver.Receive(grpc::ByteBuffer(&cut, 1)).ok());
}

TEST_F(DeviceSteps, AReceiverSaysThatADeviceFails) {
  DeviceReceiver receiver(kSecond);
  const grpc::ByteBuffer message = *tensor::Encode(there_, kReadBack);
  ASSERT_TRUE(receiver.Receive(message).ok());
  for (int call = 0; call < 3; ++call) {
    devices_.FailAfter(call);
    EXPECT_FALSE(receiver.Receive(message).ok());
    EXPECT_TRUE(devices_.has_failed());
  }
  EXPECT_TRUE(receiver.Receive(message).ok());
}

TEST_F(DeviceSteps, CopiesHaveTheBytes) {
  const uint64_t sum = *SumAnywhere(here_);
  const struct {
    const tensor::Bundle* from;
    tensor::Device to;
  } ways[] = {{&here_, kFirst}, {&there_, tensor::Device()}, {&there_, kFirst}};
  for (const auto& way : ways) {
    auto copier = DeviceCopier::Make(*way.from, way.to);
    ASSERT_TRUE(copier.ok()) << copier.status();
    Step step;
    const int copies = devices_.copies();
    const auto copied = copier->Run(*way.from, MonotonicNs(), &step);
    ASSERT_TRUE(copied.ok()) << copied.status();
    EXPECT_EQ(*copied, sum);
    EXPECT_GT(step.read_us, 0);
    EXPECT_LE(devices_.copies(), copies + 2);
    devices_.FailAfter(0);
    EXPECT_FALSE(copier->Run(*way.from, MonotonicNs(), &step).ok());
  }
}

}  // namespace
}  // namespace penstock::bench
