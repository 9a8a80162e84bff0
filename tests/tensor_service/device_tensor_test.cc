// Tests tensors on a device. No code reads their elements in place, and copies
// wait for the device.

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tensor_service/codec.h"
#include "tensor_service/device_memory.h"
#include "tensor_service/store.h"
#include "tensor_service/strided.h"
#include "tensor_service/tensor.h"
#include "tests/tensor_service/fake_device.h"

namespace penstock::tensor {
namespace {

constexpr Device kFirst = {Device::Kind::kCuda, 0};
constexpr Device kSecond = {Device::Kind::kCuda, 1};
constexpr Stream kStream = {0x1000};
constexpr Stream kOther = {0x2000};

TEST(Device, HasATextThatIsReadBack) {
  EXPECT_EQ(Device().ToString(), "cpu");
  EXPECT_EQ(kSecond.ToString(), "cuda:1");
  for (const Device& device : {Device(), kFirst, kSecond}) {
    EXPECT_EQ(*ParseDevice(device.ToString()), device);
  }
  EXPECT_EQ(*ParseDevice("cuda"), kFirst);
  for (const char* wrong : {"", "CPU", "cuda:", "cuda:-1", "cuda: 1", "cuda:01",
                            "cuda:1x", "cuda:99999999999", "rocm:0"}) {
    EXPECT_EQ(ParseDevice(wrong).status().code(),
              absl::StatusCode::kInvalidArgument)
        << wrong;
  }
  EXPECT_NE(kFirst, kSecond);
  EXPECT_NE(kFirst, Device());
  EXPECT_LT(Device(), kFirst);
  EXPECT_LT(kFirst, kSecond);
}

class DeviceTensor : public testing::Test {
 protected:
  DeviceTensor() { SetDeviceMemory(&devices_); }
  ~DeviceTensor() override {
    SetDeviceMemory(nullptr);
    EXPECT_EQ(devices_.allocations(), 0u);
  }

  Tensor Here() {
    return *Tensor::Of<float>({2, 3}, {1.f, 2.f, 3.f, 4.f, 5.f, 6.f});
  }
  Tensor There() { return *Here().ToDevice(kFirst); }

  FakeDevices devices_{2};
};

TEST_F(DeviceTensor, KeepsTypeShapeAndSize) {
  const Tensor there = There();
  EXPECT_EQ(there.device(), kFirst);
  EXPECT_EQ(there.ToString(), "f32[2,3]");
  EXPECT_EQ(there.byte_size(), 24u);
  EXPECT_EQ(there.num_elements(), 6u);
  EXPECT_EQ(there.held_bytes(), 24u);
  EXPECT_TRUE(there.IsAligned());
  EXPECT_NE(there.buffer()->device_address(), 0u);
  EXPECT_EQ(Here().device(), Device());
  EXPECT_EQ(Tensor().device(), Device());
}

TEST_F(DeviceTensor, ComesBackAsItWent) {
  const Tensor second = *There().ToDevice(kSecond);
  EXPECT_EQ(second.device(), kSecond);
  for (const Tensor& there : {There(), second}) {
    const Tensor back = *there.ToHost();
    EXPECT_EQ(back.bytes(), Here().bytes());
    EXPECT_EQ(back.shape(), Here().shape());
    EXPECT_EQ(there.ToDevice(Device())->bytes(), Here().bytes());
  }
}

TEST_F(DeviceTensor, StaysWhereItIsIfItIsThereAlready) {
  const Tensor here = Here();
  const Tensor there = There();
  const int calls = devices_.calls();
  EXPECT_EQ(here.ToHost()->buffer(), here.buffer());
  EXPECT_EQ(there.ToDevice(kFirst)->buffer(), there.buffer());
  EXPECT_EQ(devices_.calls(), calls);
}

TEST_F(DeviceTensor, WithoutElementsIsCopiedToo) {
  const Tensor empty = *Tensor::Of<float>({0, 3}, {});
  const Tensor there = *empty.ToDevice(kSecond);
  EXPECT_EQ(there.device(), kSecond);
  EXPECT_EQ(there.byte_size(), 0u);
  EXPECT_EQ(there.ToHost()->shape(), empty.shape());
}

// Expects an error that names the remedy.
void ExpectRefused(const absl::Status& status) {
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_NE(status.message().find("ToHost()"), std::string::npos) << status;
  EXPECT_NE(status.message().find("cuda:0"), std::string::npos) << status;
}

TEST_F(DeviceTensor, IsRefusedByAllThatWouldReadIt) {
  Tensor there = There();
  ExpectRefused(there.flat<float>().status());
  ExpectRefused(there.mutable_flat<float>().status());
  ExpectRefused(there.Aligned().status());
  ExpectRefused(there.Copy().status());
  ExpectRefused(there.Compact().status());
  ExpectRefused(there.CheckOnHost("try"));
  Bundle bundle;
  bundle.tensors.push_back({"x", there});
  ExpectRefused(bundle.Compact().status());
  ExpectRefused(bundle.CheckOnHost("try"));
  ExpectRefused(
      StridedView::Create(DType::kF32, {2}, {4}, there.buffer()).status());
}

TEST_F(DeviceTensor, IsStoredAsACopyOnItsDevice) {
  const Tensor there = *Here().ToDevice(kSecond);
  Bundle bundle;
  bundle.tensors.push_back({"x", there});
  bundle.tensors.push_back({"y", Here()});
  TensorStore store(1 << 20);
  ASSERT_TRUE(store.Put(bundle).ok());
  // Writes to the source, which does not affect the stored tensor.
  memset(devices_.Peek(there.buffer()->device_address()), 0, 24);
  const Bundle stored = store.All();
  ASSERT_EQ(stored.tensors.size(), 2u);
  EXPECT_EQ(stored.Find("x")->device(), kSecond);
  EXPECT_FALSE(stored.Find("x")->buffer()->writable());
  EXPECT_EQ(stored.Find("x")->ToHost()->bytes(), Here().bytes());
  EXPECT_EQ(stored.Find("y")->bytes(), Here().bytes());
}

TEST_F(DeviceTensor, IsNotStoredAboveTheBudgetOrByADeviceThatFails) {
  Bundle bundle;
  bundle.tensors.push_back({"x", There()});
  TensorStore small(20);
  const int calls = devices_.calls();
  EXPECT_TRUE(absl::IsResourceExhausted(small.Put(bundle).status()));
  EXPECT_EQ(devices_.calls(), calls);
  TensorStore store(1 << 20);
  for (int call = 0; call < 2; ++call) {  // fails the allocation, then the copy
    devices_.FailAfter(call);
    EXPECT_TRUE(absl::IsInternal(store.Put(bundle).status()));
    EXPECT_TRUE(store.All().tensors.empty());
  }
  EXPECT_TRUE(store.Put(bundle).ok());
}

TEST_F(DeviceTensor, ShowsNoBytes) {
  const Tensor there = There();
  EXPECT_TRUE(there.bytes().empty());
  EXPECT_EQ(there.bytes().data(), nullptr);
  EXPECT_EQ(there.buffer()->data(), nullptr);
  EXPECT_EQ(there.buffer()->mutable_data(), nullptr);
  EXPECT_FALSE(there.IsExclusive());
  EXPECT_EQ(SliceOf(there.buffer()).size(), 0u);
  // Expects the error of a wrong type first, as on the host.
  EXPECT_EQ(there.flat<double>().status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(DeviceTensor, NeedsSomethingThatCopies) {
  const Tensor there = There();
  Bundle bundle;
  bundle.tensors.push_back({"x", there});
  SetDeviceMemory(nullptr);
  for (const absl::Status& status :
       {there.ToHost().status(), there.ToDevice(kSecond).status(),
        Here().ToDevice(kFirst).status(), bundle.ToHost().status(),
        Encode(bundle).status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_NE(status.message().find("SetDeviceMemory()"), std::string::npos)
        << status;
  }
}

TEST_F(DeviceTensor, IsReleasedOnceByItsLastHolder) {
  const uintptr_t address = devices_.Malloc(kFirst, 8);
  int released = 0;
  auto buffer = Buffer::WrapDevice(kFirst, address, 8, /*writable=*/false,
                                   [&] { ++released; });
  Tensor part = *Tensor::FromBuffer(DType::kF32, {1},
                                    Buffer::PartOf(std::move(buffer), 4, 4));
  EXPECT_EQ(part.held_bytes(), 8u);
  EXPECT_EQ(part.buffer()->device_address(), address + 4);
  EXPECT_EQ(released, 0);
  part = Tensor();
  EXPECT_EQ(released, 1);
  devices_.Free(address);
}

TEST_F(DeviceTensor, IsReadOnceItsStreamHasGotSoFar) {
  Tensor there = There();
  char* const memory = devices_.Peek(there.buffer()->device_address());
  const auto write = [memory](float value) {
    return [memory, value] { memcpy(memory, &value, sizeof(value)); };
  };
  devices_.Queue(kFirst, kStream, write(10.f));
  devices_.Queue(kFirst, kOther, [] { FAIL() << "nobody has asked for it"; });
  auto event = devices_.Record(kFirst, kStream);
  ASSERT_TRUE(event.ok());
  devices_.Queue(kFirst, kStream, write(20.f));  // after the recorded event
  there = *Tensor::FromBuffer(DType::kF32, {2, 3},
                              Buffer::After(there.buffer(), *event));
  EXPECT_EQ((*there.ToHost()->flat<float>())[0], 10.f);
  EXPECT_EQ(devices_.Queued(kFirst, kStream), 1u);
  EXPECT_EQ(devices_.Queued(kFirst, kOther), 1u);
}

TEST_F(DeviceTensor, PartsWaitForWhatTheWholeWaitsFor) {
  const Tensor whole = There();
  char* const memory = devices_.Peek(whole.buffer()->device_address());
  devices_.Queue(kFirst, kStream, [memory] { memset(memory, 0x11, 24); });
  const auto later =
      Buffer::After(whole.buffer(), *devices_.Record(kFirst, kStream));
  EXPECT_TRUE(later->writable());
  const Tensor part =
      *Tensor::FromBuffer(DType::kUint8, {3}, Buffer::PartOf(later, 20, 3));
  EXPECT_EQ(part.ToHost()->bytes(), "\x11\x11\x11");
}

TEST_F(DeviceTensor, AStreamWaitsForAnEventOfAnotherDevice) {
  std::string order;
  devices_.Queue(kFirst, kStream, [&] { order += "1"; });
  const auto event = *devices_.Record(kFirst, kStream);
  ASSERT_TRUE(devices_.Order(*event, kSecond, kOther).ok());
  devices_.Queue(kSecond, kOther, [&] { order += "2"; });
  ASSERT_TRUE(devices_.Await(**devices_.Record(kSecond, kOther)).ok());
  EXPECT_EQ(order, "12");
}

TEST_F(DeviceTensor, ManyComeBackInOneBatch) {
  Bundle bundle;
  for (int i = 0; i < 10; ++i) {
    bundle.tensors.push_back({std::string(1, static_cast<char>('a' + i)),
                              *Here().ToDevice(i % 2 == 0 ? kFirst : kSecond)});
  }
  bundle.tensors.push_back({"here", Here()});
  const int copies = devices_.copies();
  const Bundle back = *bundle.ToHost();
  EXPECT_EQ(devices_.copies(), copies + 1);
  for (const NamedTensor& named : back.tensors) {
    EXPECT_EQ(named.tensor.bytes(), Here().bytes()) << named.name;
  }
}

TEST_F(DeviceTensor, FailureIsTheDevicesOwn) {
  const Tensor there = There();
  Bundle bundle;
  bundle.tensors.push_back({"x", there});
  const std::vector<std::function<absl::Status()>> uses = {
      [&] { return there.ToHost().status(); },
      [&] { return there.ToDevice(kSecond).status(); },
      [&] { return Here().ToDevice(kFirst).status(); },
      [&] { return bundle.ToHost().status(); },
      [&] { return Encode(bundle).status(); },
  };
  for (size_t i = 0; i < uses.size(); ++i) {
    for (int call = 0;; ++call) {
      devices_.FailAfter(call);
      const absl::Status status = uses[i]();
      if (!devices_.has_failed()) {
        EXPECT_TRUE(status.ok()) << i << ": " << status;
        EXPECT_GT(call, 0) << i;
        break;
      }
      EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << i;
      EXPECT_NE(status.message().find("told to fail"), std::string::npos) << i;
    }
    devices_.FailAfter(-1);
  }
}

TEST_F(DeviceTensor, IsEncodedAsItsCopyOnTheHostIs) {
  Bundle here;
  Bundle there;
  const std::vector<float> values(1000, 0.5f);
  const std::vector<Tensor> tensors = {
      Here(), *Tensor::Of<float>({1000}, values), *Tensor::Of<float>({0}, {})};
  for (const Tensor& tensor : tensors) {
    here.tensors.push_back({"x", tensor});
    there.tensors.push_back({"x", *tensor.ToDevice(kSecond)});
  }
  const auto bytes = [](const grpc::ByteBuffer& message) {
    std::vector<grpc::Slice> slices;
    EXPECT_TRUE(message.Dump(&slices).ok());
    std::string all;
    for (const grpc::Slice& slice : slices) {
      all.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
    }
    return all;
  };
  for (const bool checksums : {false, true}) {
    EXPECT_EQ(bytes(*Encode(there, "header", checksums)),
              bytes(*Encode(here, "header", checksums)));
  }
}

}  // namespace
}  // namespace penstock::tensor
