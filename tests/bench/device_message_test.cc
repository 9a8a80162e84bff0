// Tests bench/rpc's messages on simulated devices: the right bytes must be in
// the right places.

#include "bench/rpc/message/device_message.h"

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "bench/rpc/message/message.h"
#include "bench/rpc/message/payload.h"
#include "bench/rpc/message/tensor_form.h"
#include "gtest/gtest.h"
#include "tensor_service/device_memory.h"
#include "tests/tensor_service/fake_device.h"

namespace penstock {
namespace bench {
namespace {

constexpr tensor::Device kDevice = {tensor::Device::Kind::kCuda, 0};

// Never destroyed, because the messages' spare memory is never destroyed, and
// uses this object.
tensor::FakeDevices* Devices() {
  static auto* const devices = [] {
    auto* const made = new tensor::FakeDevices(1);
    tensor::SetDeviceMemory(made);
    SetMessagesOnDevice(kDevice);
    return made;
  }();
  return devices;
}

size_t BytesOnDevice(const grpc::ByteBuffer& message) {
  std::vector<grpc::Slice> slices;
  EXPECT_TRUE(message.Dump(&slices).ok());
  size_t bytes = 0;
  for (const grpc::Slice& slice : slices) {
    if (!Devices()->DeviceOfSlice(slice.begin()).is_host()) {
      bytes += slice.size();
    }
  }
  return bytes;
}

TEST(DeviceMessage, HasItsFirstWordHereAndTheRestThere) {
  Devices()->LetLend();
  for (size_t bytes : {8, 9, 100003, 1 << 20}) {
    const grpc::ByteBuffer message = MakePayload(bytes, 7);
    EXPECT_EQ(message.Length(), bytes);
    EXPECT_EQ(BytesOnDevice(message), bytes - 8);
    size_t size = 0;
    const auto seed = CheckPayload(message, &size);
    ASSERT_TRUE(seed.ok()) << seed.status();
    EXPECT_EQ(*seed, 7u);
    EXPECT_EQ(size, bytes);
    StreamTally tally;
    EXPECT_TRUE(tally.Add(MakePayload(bytes, 9 | kUnread)).ok());
    EXPECT_TRUE(tally.Add(message).ok());
    const auto answer = Answer(message);
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_TRUE(CheckReply(*answer, bytes, 7).ok());
  }
}

TEST(DeviceMessage, WrongBytesThereAreNoticed) {
  Devices()->LetLend();
  const grpc::ByteBuffer message = MakePayload(100000, 7);
  std::vector<grpc::Slice> slices;
  ASSERT_TRUE(message.Dump(&slices).ok());
  *Devices()->Peek(reinterpret_cast<uintptr_t>(slices[1].begin()) + 77777) ^= 1;
  EXPECT_FALSE(CheckPayload(message).ok());
}

TEST(DeviceMessage, MemoryIsUsedAgain) {
  Devices()->LetLend();
  MakePayload(5000, 1);
  const size_t before = Devices()->allocations();
  for (int i = 0; i < 10; ++i) MakePayload(5000, i);
  EXPECT_EQ(Devices()->allocations(), before);
}

TEST(DeviceMessage, HasManyBuffersAndOtherForms) {
  Devices()->LetLend();
  SetMessageBuffers(3, {});
  for (const MessageForm form : {MessageForm::kTensor, MessageForm::kRaw}) {
    SetMessageForm(form);
    const grpc::ByteBuffer message = MakePayload(300001, 5);
    EXPECT_GT(BytesOnDevice(message), 290000u);
    EXPECT_EQ(*CheckPayload(message), 5u);
  }
  SetMessageBuffers(1, {});
}

TEST(DeviceMessageDeathTest, ADeviceThatFailsEndsTheRunAndSaysWhy) {
  Devices()->LetLend();
  const grpc::ByteBuffer message = MakePayload(100000, 7);
  Devices()->FailAfter(0);
  EXPECT_FALSE(CheckPayload(message).ok());
  const testing::ExitedWithCode failed(1);
  for (const MessageForm form : {MessageForm::kTensor, MessageForm::kRaw}) {
    SetMessageForm(form);
    Devices()->FailAfter(0);
    EXPECT_EXIT(MakePayload(100000, 7), failed, "told to fail");
    Devices()->FailAfter(-1);
  }
  Devices()->LetLend(0);
  EXPECT_EXIT(MakePayload(100000, 7), failed, "no transport");
}

}  // namespace
}  // namespace bench
}  // namespace penstock
