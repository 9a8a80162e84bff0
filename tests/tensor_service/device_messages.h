// Makes messages with parts on devices, for tests.

#ifndef PENSTOCK_TESTS_TENSOR_SERVICE_DEVICE_MESSAGES_H_
#define PENSTOCK_TESTS_TENSOR_SERVICE_DEVICE_MESSAGES_H_

#include <algorithm>
#include <cstring>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "tensor_service/codec.h"
#include "tensor_service/destination.h"
#include "tensor_service/device_memory.h"
#include "tests/tensor_service/fake_device.h"

namespace penstock::tensor {

inline constexpr Device kFirst = {Device::Kind::kCuda, 0};
inline constexpr Device kSecond = {Device::Kind::kCuda, 1};

inline std::string Bytes(size_t size, char first) {
  std::string bytes(size, '\0');
  for (size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<char>(first + i * 7 + (i >> 8));
  }
  return bytes;
}

inline Tensor OnHost(absl::string_view bytes) {
  Tensor tensor =
      *Tensor::Allocate(DType::kUint8, {static_cast<int64_t>(bytes.size())});
  if (!bytes.empty()) {
    memcpy(tensor.buffer()->mutable_data(), bytes.data(), bytes.size());
  }
  return tensor;
}

// The slices of a message, from which another message can be built.
class Slices {
 public:
  explicit Slices(FakeDevices* devices) : devices_(devices) {}

  void AddHost(absl::string_view bytes) {
    slices_.emplace_back(bytes.data(), bytes.size());
  }
  void Add(const Device& device, absl::string_view bytes) {
    if (device.is_host() || bytes.empty()) return AddHost(bytes);
    slices_.push_back(devices_->SliceOn(device, bytes));
  }
  void Add(grpc::Slice slice) { slices_.push_back(std::move(slice)); }
  grpc::ByteBuffer Message() const {
    return grpc::ByteBuffer(slices_.data(), slices_.size());
  }

 private:
  FakeDevices* const devices_;
  std::vector<grpc::Slice> slices_;
};

// Imitates a transport that receives into destinations on devices.
class Lander {
 public:
  Lander(FakeDevices* devices, std::vector<Destination>* places)
      : devices_(devices), places_(places) {}

  // Returns the message with some slices moved to destinations of equal size.
  // Of n candidates, choose(n) selects one or none.
  template <typename Choose>
  grpc::ByteBuffer Land(const grpc::ByteBuffer& message, Choose choose) {
    std::vector<grpc::Slice> slices;
    EXPECT_TRUE(message.Dump(&slices).ok());
    std::set<Destination*> taken;
    for (grpc::Slice& slice : slices) {
      std::vector<Destination*> fits;
      for (Destination& place : *places_) {
        if (place.into.byte_size() == slice.size() && !taken.count(&place)) {
          fits.push_back(&place);
        }
      }
      const size_t chosen = choose(fits.size());
      if (chosen >= fits.size()) continue;
      taken.insert(fits[chosen]);
      slice = LandIn(*fits[chosen]->into.buffer(), slice);
    }
    return grpc::ByteBuffer(slices.data(), slices.size());
  }

 private:
  const char* BytesOf(const grpc::Slice& slice) {
    return devices_->DeviceOfSlice(slice.begin()).is_host()
               ? reinterpret_cast<const char*>(slice.begin())
               : devices_->Peek(reinterpret_cast<uintptr_t>(slice.begin()));
  }
  grpc::Slice LandIn(const Buffer& into, const grpc::Slice& slice) {
    const bool is_host = into.device().is_host();
    const uintptr_t address = is_host ? reinterpret_cast<uintptr_t>(into.data())
                                      : into.device_address();
    memcpy(is_host ? const_cast<char*>(into.data()) : devices_->Peek(address),
           BytesOf(slice), slice.size());
    // NOLINTNEXTLINE(performance-no-int-to-ptr): nobody follows a device's
    return grpc::Slice(reinterpret_cast<void*>(address), slice.size(),
                       [](void*) {});
  }

  FakeDevices* const devices_;
  std::vector<Destination>* const places_;
};

// Two lending devices, and helpers for their memory.
class DeviceSlices : public testing::Test {
 protected:
  DeviceSlices() {
    SetDeviceMemory(&devices_);
    devices_.LetLend();
  }
  ~DeviceSlices() override {
    SetDeviceMemory(nullptr);
    EXPECT_EQ(devices_.allocations(), 0u);
  }

  static Bundle Named(const std::string& name, const Tensor& tensor) {
    Bundle bundle;
    bundle.tensors.push_back({name, tensor});
    return bundle;
  }

  Tensor Place(const Tensor& like, const Device& device = kFirst) {
    if (device.is_host()) {
      return *Tensor::Allocate(like.dtype(), like.shape());
    }
    auto buffer = *devices_.Allocate(device, like.byte_size());
    return *Tensor::FromBuffer(like.dtype(), like.shape(), buffer);
  }

  size_t SlicesOnDevices(const grpc::ByteBuffer& message) {
    std::vector<grpc::Slice> slices;
    EXPECT_TRUE(message.Dump(&slices).ok());
    return std::count_if(slices.begin(), slices.end(), [this](const auto& s) {
      return !devices_.DeviceOfSlice(s.begin()).is_host();
    });
  }

  // Returns a message with one tensor whose bytes lie on a device, whole or in
  // parts of these sizes and a rest.
  grpc::ByteBuffer InParts(const std::string& bytes,
                           const std::vector<size_t>& parts) {
    const std::string flat =
        devices_.Flat(*Encode(Named("w", OnHost(bytes)), {}, false));
    const size_t begin = flat.find(bytes);
    Slices slices(&devices_);
    slices.AddHost(absl::string_view(flat).substr(0, begin));
    absl::string_view left = bytes;
    for (size_t part : parts) {
      slices.Add(part % 2 == 0 ? kFirst : kSecond, left.substr(0, part));
      left.remove_prefix(part);
    }
    slices.Add(kFirst, left);
    slices.AddHost(absl::string_view(flat).substr(begin + bytes.size()));
    return slices.Message();
  }

  FakeDevices devices_{2};
};

}  // namespace penstock::tensor

#endif  // PENSTOCK_TESTS_TENSOR_SERVICE_DEVICE_MESSAGES_H_
