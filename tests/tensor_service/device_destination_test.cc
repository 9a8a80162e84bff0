// Tests destinations on devices: received data is copied there, in order with
// the work of the program's streams.

#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "tensor_service/codec.h"
#include "tensor_service/destination.h"
#include "tensor_service/device_memory.h"
#include "tests/tensor_service/fake_device.h"
#include "tests/tensor_service/random_bundle.h"

namespace penstock::tensor {
namespace {

constexpr Device kFirst = {Device::Kind::kCuda, 0};
constexpr Device kSecond = {Device::Kind::kCuda, 1};
constexpr Stream kStream = {0x1000};

Tensor Floats(const std::vector<float>& values) {
  return *Tensor::Of<float>({static_cast<int64_t>(values.size())}, values);
}

Bundle Named(const std::string& name, const Tensor& tensor) {
  Bundle bundle;
  bundle.tensors.push_back({name, tensor});
  return bundle;
}

class DeviceDestination : public testing::Test {
 protected:
  DeviceDestination() { SetDeviceMemory(&devices_); }
  ~DeviceDestination() override {
    SetDeviceMemory(nullptr);
    EXPECT_EQ(devices_.allocations(), 0u);
  }

  // Returns a zeroed tensor with the type and shape of `like`.
  Tensor Place(const Tensor& like, const Device& device = kFirst) {
    auto buffer = *devices_.Allocate(device, like.byte_size());
    return *Tensor::FromBuffer(like.dtype(), like.shape(), buffer);
  }

  FakeDevices devices_{2};
};

TEST_F(DeviceDestination, TensorIsCopiedThere) {
  const Tensor sent = Floats({1, 2, 3});
  std::vector<Destination> places = {{"w", Place(sent)}};
  const auto got =
      Decode(*Encode(Named("w", sent)), nullptr, absl::MakeSpan(places));
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_TRUE(places[0].used.ok()) << places[0].used;
  EXPECT_FALSE(places[0].landed);
  EXPECT_EQ(got->tensors[0].tensor.buffer(), places[0].into.buffer());
  EXPECT_EQ(places[0].into.ToHost()->bytes(), sent.bytes());
}

TEST_F(DeviceDestination, AllAreCopiedInOneBatch) {
  Bundle bundle;
  std::vector<Destination> places;
  for (int i = 0; i < 8; ++i) {
    const std::string name(1, static_cast<char>('a' + i));
    bundle.tensors.push_back({name, Floats({static_cast<float>(i), 1, 2})});
    if (i == 3) continue;  // stays on the host
    places.push_back({name, Place(bundle.tensors.back().tensor,
                                  i % 2 == 0 ? kFirst : kSecond)});
  }
  const int copies = devices_.copies();
  const auto got = Decode(*Encode(bundle), nullptr, absl::MakeSpan(places));
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(devices_.copies(), copies + 1);
  for (size_t i = 0; i < 8; ++i) {
    const Tensor& tensor = got->tensors[i].tensor;
    EXPECT_EQ(tensor.device().is_host(), i == 3);
    EXPECT_EQ(tensor.ToHost()->bytes(), bundle.tensors[i].tensor.bytes()) << i;
  }
}

TEST_F(DeviceDestination, IsOverwrittenOnceItsStreamHasReadIt) {
  const Tensor sent = Floats({1});
  const Tensor memory = Place(sent);
  char* const there = devices_.Peek(memory.buffer()->device_address());
  float before = -1;
  devices_.Queue(kFirst, kStream,
                 [&] { memcpy(&before, there, sizeof(before)); });
  const auto event = *devices_.Record(kFirst, kStream);
  std::vector<Destination> places = {
      {"w", *Tensor::FromBuffer(DType::kF32, {1},
                                Buffer::After(memory.buffer(), event))}};
  ASSERT_TRUE(
      Decode(*Encode(Named("w", sent)), nullptr, absl::MakeSpan(places)).ok());
  EXPECT_EQ(before, 0);
  EXPECT_EQ(memory.ToHost()->bytes(), sent.bytes());
}

TEST_F(DeviceDestination, OneThatDoesNotFitIsLeftAndSaysWhy) {
  const Tensor sent = Floats({1, 2, 3});
  const Tensor whole = Place(Floats({1, 2, 3, 4, 5}));
  const auto read_only = *Tensor::FromBuffer(
      DType::kF32, {3}, Buffer::PartOf(whole.buffer(), 0, 12));
  const Tensor part = *Tensor::FromBuffer(
      DType::kF32, {3},
      Buffer::WrapDevice(kFirst, whole.buffer()->device_address() + 4, 12,
                         /*writable=*/true, [held = whole] {}));
  std::vector<Destination> places = {
      {"short", Place(Floats({1}))},
      {"read-only", read_only},
      {"whole", whole},
      {"part", part},
      {"absent", Place(sent)},
  };
  Bundle bundle;
  for (const char* name : {"short", "read-only", "whole", "part"}) {
    bundle.tensors.push_back({name, sent});
  }
  const int calls = devices_.calls();
  const auto got = Decode(*Encode(bundle), nullptr, absl::MakeSpan(places));
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(devices_.calls(), calls);
  EXPECT_TRUE(absl::IsInvalidArgument(places[0].used));
  EXPECT_TRUE(absl::IsFailedPrecondition(places[1].used));
  EXPECT_TRUE(absl::IsInvalidArgument(places[2].used));
  EXPECT_TRUE(absl::IsFailedPrecondition(places[3].used)) << places[3].used;
  EXPECT_TRUE(absl::IsNotFound(places[4].used));
  for (const NamedTensor& named : got->tensors) {
    EXPECT_EQ(named.tensor.bytes(), sent.bytes()) << named.name;
  }
}

TEST_F(DeviceDestination, OneAddressOnTwoDevicesIsTwoPlaces) {
  const Tensor sent = Floats({1});
  const Tensor first = Place(sent);
  const Tensor second = *Tensor::FromBuffer(
      DType::kF32, {1},
      Buffer::WrapDevice(kSecond, first.buffer()->device_address(), 4,
                         /*writable=*/true, nullptr));
  std::vector<Destination> places = {{"a", first}, {"b", second}};
  ASSERT_TRUE(
      Decode(*Encode(Named("a", sent)), nullptr, absl::MakeSpan(places)).ok());
  EXPECT_TRUE(places[0].used.ok());
  EXPECT_TRUE(absl::IsNotFound(places[1].used)) << places[1].used;
}

TEST_F(DeviceDestination, OfTwoTensorsWithOneNameTheFirstIsPlaced) {
  Bundle bundle = Named("w", Floats({1}));
  bundle.tensors.push_back({"w", Floats({2})});
  std::vector<Destination> places = {{"w", Place(Floats({0}))}};
  const auto got = Decode(*Encode(bundle), nullptr, absl::MakeSpan(places));
  ASSERT_TRUE(got.ok());
  EXPECT_EQ((*places[0].into.ToHost()->flat<float>())[0], 1);
  EXPECT_EQ((*got->tensors[1].tensor.flat<float>())[0], 2);
}

TEST_F(DeviceDestination, WithoutAnythingThatCopiesTheTensorStaysHere) {
  const Tensor sent = Floats({1, 2});
  std::vector<Destination> places = {{"w", Place(sent)}};
  SetDeviceMemory(nullptr);
  const auto got =
      Decode(*Encode(Named("w", sent)), nullptr, absl::MakeSpan(places));
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_TRUE(absl::IsFailedPrecondition(places[0].used)) << places[0].used;
  EXPECT_NE(places[0].used.message().find("SetDeviceMemory()"),
            std::string::npos);
  EXPECT_EQ(got->tensors[0].tensor.bytes(), sent.bytes());
}

TEST_F(DeviceDestination, FailedCopyIsWhatTheMessageEndsWith) {
  Bundle bundle = Named("here", Floats({1, 2}));
  bundle.tensors.push_back({"there", Floats({3})});
  std::vector<Destination> places = {
      {"here", *Tensor::Allocate(DType::kF32, {2})},
      {"there", Place(Floats({0}))}};
  const grpc::ByteBuffer message = *Encode(bundle);
  devices_.FailAfter(0);
  const auto failed = Decode(message, nullptr, absl::MakeSpan(places));
  EXPECT_EQ(failed.status().code(), absl::StatusCode::kInternal);
  EXPECT_NE(failed.status().message().find("told to fail"), std::string::npos);
  EXPECT_EQ(places[1].used, failed.status());
  // Receives into the same destinations again.
  const auto got = Decode(message, nullptr, absl::MakeSpan(places));
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ((*places[1].into.ToHost()->flat<float>())[0], 3);
}

TEST_F(DeviceDestination, NothingIsCopiedOfAMessageThatIsBroken) {
  const Tensor sent = Floats({1, 2});
  std::vector<Destination> places = {{"w", Place(sent)}};
  std::vector<grpc::Slice> slices;
  ASSERT_TRUE(Encode(Named("w", sent))->Dump(&slices).ok());
  slices.emplace_back(std::string("\x0a\x7f"));  // a truncated field
  const int calls = devices_.calls();
  EXPECT_FALSE(Decode(grpc::ByteBuffer(slices.data(), slices.size()), nullptr,
                      absl::MakeSpan(places))
                   .ok());
  EXPECT_EQ(devices_.calls(), calls);
}

// Tests messages in random slices, to destinations on the host and on two
// devices, against decoding without destinations.
TEST_F(DeviceDestination, RandomBundlesArriveAsOnTheHost) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 200; ++round) {
    const Bundle bundle =
        RandomBundle(&random, 8192, HeapAllocator(), HeapAllocator());
    grpc::Slice flat;
    ASSERT_TRUE(
        Encode(bundle, "h", random() % 2 == 0)->DumpToSingleSlice(&flat).ok());
    std::vector<grpc::Slice> slices;
    for (size_t at = 0; at < flat.size();) {
      const size_t end = std::min(flat.size(), at + 1 + random() % 3000);
      slices.push_back(flat.sub(at, end));
      at = end;
    }
    const grpc::ByteBuffer message(slices.data(), slices.size());
    std::vector<Destination> places;
    for (const NamedTensor& named : bundle.tensors) {
      switch (random() % 4) {
        case 0:
          places.push_back({named.name, Place(named.tensor, kFirst)});
          break;
        case 1:
          places.push_back({named.name, Place(named.tensor, kSecond)});
          break;
        case 2:
          places.push_back(
              {named.name,
               *Tensor::Allocate(named.tensor.dtype(), named.tensor.shape())});
          break;
      }
    }
    std::string header;
    const auto got = Decode(message, &header, absl::MakeSpan(places));
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_EQ(header, "h");
    for (const Destination& place : places) {
      EXPECT_TRUE(place.used.ok()) << place.used;
    }
    ASSERT_EQ(got->tensors.size(), bundle.tensors.size());
    for (size_t i = 0; i < bundle.tensors.size(); ++i) {
      EXPECT_EQ(got->tensors[i].tensor.ToHost()->bytes(),
                bundle.tensors[i].tensor.bytes());
    }
  }
}

}  // namespace
}  // namespace penstock::tensor
