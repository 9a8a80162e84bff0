// Tests DLPack with memory on devices.

#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "tensor_service/device_memory.h"
#include "tensor_service/dlpack.h"
#include "tests/tensor_service/fake_device.h"

namespace penstock::tensor {
namespace {

constexpr Device kSecond = {Device::Kind::kCuda, 1};
constexpr Stream kStream = {0x1000};

// Lends int16 on a device, and counts the calls of the deleter.
class Lent {
 public:
  Lent(DLDevice device, void* data, std::vector<int64_t> shape,
       std::vector<int64_t> strides = {})
      : shape_(std::move(shape)), strides_(std::move(strides)) {
    managed_.manager_ctx = this;
    managed_.deleter = [](DLManagedTensor* self) {
      ++static_cast<Lent*>(self->manager_ctx)->deleted_;
    };
    DLTensor& tensor = managed_.dl_tensor;
    tensor.data = data;
    tensor.device = device;
    tensor.ndim = static_cast<int>(shape_.size());
    tensor.dtype = {kDLInt, 16, 1};
    tensor.shape = shape_.data();
    tensor.strides = strides_.empty() ? nullptr : strides_.data();
  }

  DLManagedTensor* managed() { return &managed_; }
  DLTensor& tensor() { return managed_.dl_tensor; }
  int deleted() const { return deleted_; }

 private:
  std::vector<int64_t> shape_;
  std::vector<int64_t> strides_;
  DLManagedTensor managed_ = {};
  int deleted_ = 0;
};

class DeviceDLPack : public testing::Test {
 protected:
  DeviceDLPack() : address_(devices_.Malloc(kSecond, 16)) {
    SetDeviceMemory(&devices_);
    for (int16_t i = 0; i < 8; ++i) {
      memcpy(devices_.Peek(address_) + 2 * i, &i, 2);
    }
  }
  ~DeviceDLPack() override {
    SetDeviceMemory(nullptr);
    devices_.Free(address_);
    EXPECT_EQ(devices_.allocations(), 0u);
  }

  void* data() const { return reinterpret_cast<void*>(address_); }

  FakeDevices devices_{2};
  const uintptr_t address_;
};

TEST_F(DeviceDLPack, MemoryIsBorrowedWhereItIs) {
  for (const DLDeviceType type : {kDLCUDA, kDLCUDAManaged}) {
    Lent lent({type, 1}, data(), {2, 2}, {2, 1});
    lent.tensor().byte_offset = 4;
    auto tensor = FromDLPack(lent.managed());
    ASSERT_TRUE(tensor.ok()) << tensor.status();
    EXPECT_EQ(tensor->device(), kSecond);
    EXPECT_EQ(tensor->buffer()->device_address(), address_ + 4);
    EXPECT_FALSE(tensor->buffer()->writable());
    const Tensor here = *tensor->ToHost();
    EXPECT_EQ((*here.flat<int16_t>())[0], 2);
    EXPECT_EQ((*here.flat<int16_t>())[3], 5);
    EXPECT_EQ(lent.deleted(), 0);
    *tensor = Tensor();
    EXPECT_EQ(lent.deleted(), 1);
  }
}

TEST_F(DeviceDLPack, GapsAreRefusedWithTheRemedy) {
  for (const std::vector<int64_t>& strides :
       {std::vector<int64_t>{1, 2}, {4, 2}, {-2, 1}, {0, 1}}) {
    Lent lent({kDLCUDA, 1}, data(), {2, 2}, strides);
    const auto tensor = FromDLPack(lent.managed());
    EXPECT_EQ(tensor.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_TRUE(absl::StrContains(tensor.status().message(), ".contiguous()"))
        << tensor.status();
    EXPECT_EQ(lent.deleted(), 0);
  }
  // Lends a dimension of one element, whose stride is ignored.
  Lent lent({kDLCUDA, 1}, data(), {1, 2}, {77, 1});
  EXPECT_TRUE(FromDLPack(lent.managed()).ok());
}

TEST_F(DeviceDLPack, NonsenseIsRefused) {
  Lent null({kDLCUDA, 1}, nullptr, {2});
  EXPECT_FALSE(FromDLPack(null.managed()).ok());
  Lent negative({kDLCUDA, -1}, data(), {2});
  EXPECT_FALSE(FromDLPack(negative.managed()).ok());
  Lent outside({kDLCUDA, 1}, data(), {2});
  outside.tensor().byte_offset = ~uint64_t{0};
  EXPECT_FALSE(FromDLPack(outside.managed()).ok());
  Lent empty({kDLCUDA, 1}, nullptr, {0, 3});
  EXPECT_TRUE(FromDLPack(empty.managed()).ok());
}

TEST_F(DeviceDLPack, BorrowedMemoryIsReadAfterItsEvent) {
  const int16_t written = 99;
  char* const memory = devices_.Peek(address_);
  devices_.Queue(kSecond, kStream,
                 [&] { memcpy(memory, &written, sizeof(written)); });
  Lent lent({kDLCUDA, 1}, data(), {8});
  const Tensor tensor =
      *FromDLPack(lent.managed(), nullptr, *devices_.Record(kSecond, kStream));
  EXPECT_EQ(devices_.Queued(kSecond, kStream), 1u);
  EXPECT_EQ((*tensor.ToHost()->flat<int16_t>())[0], 99);
}

TEST_F(DeviceDLPack, PinnedMemoryIsTheHostsOnceItsEventHasCome) {
  int16_t pinned[2] = {1, 2};
  devices_.Queue(kSecond, kStream, [&] { pinned[0] = 3; });
  Lent lent({kDLCUDAHost, 1}, pinned, {2});
  const Tensor tensor =
      *FromDLPack(lent.managed(), nullptr, *devices_.Record(kSecond, kStream));
  EXPECT_TRUE(tensor.device().is_host());
  EXPECT_EQ((*tensor.flat<int16_t>())[0], 3);
  const auto event = *devices_.Record(kSecond, kStream);
  devices_.FailAfter(0);
  EXPECT_EQ(FromDLPack(lent.managed(), nullptr, event).status().code(),
            absl::StatusCode::kInternal);
  EXPECT_EQ(lent.deleted(), 0);
}

TEST_F(DeviceDLPack, LendsTheMemoryUntilTheDeleterRuns) {
  DLManagedTensor* lent = nullptr;
  uintptr_t address = 0;
  {
    const Tensor there =
        *Tensor::Of<float>({2, 1}, {1.f, 2.f})->ToDevice(kSecond);
    address = there.buffer()->device_address();
    lent = *ToDLPack(there);
  }
  EXPECT_EQ(lent->dl_tensor.data, reinterpret_cast<void*>(address));
  EXPECT_EQ(lent->dl_tensor.device.device_type, kDLCUDA);
  EXPECT_EQ(lent->dl_tensor.device.device_id, 1);
  EXPECT_EQ(lent->dl_tensor.shape[0], 2);
  EXPECT_EQ(lent->dl_tensor.strides[0], 1);
  EXPECT_EQ(devices_.allocations(), 2u);
  const Tensor back = *FromDLPack(lent);
  EXPECT_EQ((*back.ToHost()->flat<float>())[1], 2.f);
}

}  // namespace
}  // namespace penstock::tensor
