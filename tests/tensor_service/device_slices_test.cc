// Tests messages with parts in device memory, which the CPU cannot access: the
// output of Encode(), and Decode() of arbitrary messages.

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "tensor_service/codec.h"
#include "tensor_service/destination.h"
#include "tensor_service/device_memory.h"
#include "tests/tensor_service/device_messages.h"
#include "tests/tensor_service/fake_device.h"

namespace penstock::tensor {
namespace {

constexpr Stream kStream = {0x1000};

TEST_F(DeviceSlices, LongTensorsAreLentAndShortOnesCopied) {
  Bundle here;
  for (size_t bytes : {kLendAtLeast - 1, kLendAtLeast, kLendAtLeast + 5}) {
    here.tensors.push_back(
        {absl::StrCat(bytes), OnHost(Bytes(bytes, bytes % 7))});
  }
  Bundle there;
  for (const NamedTensor& named : here.tensors) {
    there.tensors.push_back({named.name, *named.tensor.ToDevice(kSecond)});
  }
  const int copies = devices_.copies();
  const auto message = Encode(there, "header", false);
  ASSERT_TRUE(message.ok()) << message.status();
  EXPECT_EQ(devices_.copies(), copies + 1);
  EXPECT_EQ(SlicesOnDevices(*message), 2u);
  EXPECT_EQ(devices_.Flat(*message),
            devices_.Flat(*Encode(here, "header", false)));
}

TEST_F(DeviceSlices, AMessageKeepsWhatIsLent) {
  auto message = std::make_unique<grpc::ByteBuffer>(*Encode(
      Named("w", *OnHost(Bytes(100000, 1)).ToDevice(kFirst)), {}, false));
  EXPECT_EQ(devices_.allocations(), 1u);
  message.reset();
  EXPECT_EQ(devices_.allocations(), 0u);
}

TEST_F(DeviceSlices, WhatCannotBeLentIsCopied) {
  const Tensor here = OnHost(Bytes(100000, 1));
  const Bundle there = Named("w", *here.ToDevice(kFirst));
  devices_.LetLend(0);
  const auto copied = Encode(there, {}, false);
  ASSERT_TRUE(copied.ok()) << copied.status();
  EXPECT_EQ(SlicesOnDevices(*copied), 0u);
  devices_.LetLend();
  // Encodes with a checksum. The CPU computes it, so the tensor must be on the
  // host.
  const auto checked = Encode(there, {}, true);
  ASSERT_TRUE(checked.ok()) << checked.status();
  EXPECT_EQ(SlicesOnDevices(*checked), 0u);
  EXPECT_EQ(devices_.Flat(*copied),
            devices_.Flat(*Encode(Named("w", here), {}, false)));
}

TEST_F(DeviceSlices, ACopyThatFailsIsTheEncodersError) {
  const Bundle there = Named("w", *OnHost(Bytes(100000, 1)).ToDevice(kFirst));
  devices_.LetLend(0);
  devices_.FailAfter(0);
  EXPECT_TRUE(absl::IsInternal(Encode(there, {}, false).status()));
}

TEST_F(DeviceSlices, ATensorIsCopiedToTheHostOrKept) {
  const std::string bytes = Bytes(100000, 3);
  const grpc::ByteBuffer message =
      *Encode(Named("w", *OnHost(bytes).ToDevice(kSecond)), {}, false);
  const auto here = Decode(message);
  ASSERT_TRUE(here.ok()) << here.status();
  EXPECT_EQ(here->tensors[0].tensor.bytes(), bytes);
  const int calls = devices_.calls();
  const auto kept = Decode(message, nullptr, {}, DeviceTensors::kKeep);
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_EQ(devices_.calls(), calls);
  const Tensor& tensor = kept->tensors[0].tensor;
  EXPECT_EQ(tensor.device(), kSecond);
  EXPECT_FALSE(tensor.buffer()->writable());
  EXPECT_EQ(tensor.ToHost()->bytes(), bytes);
}

TEST_F(DeviceSlices, ATensorThatIsNotAlignedIsNotKept) {
  const Tensor host = *Tensor::Allocate(DType::kF64, {20000});
  memset(host.buffer()->mutable_data(), 'x', host.byte_size());
  const Tensor there = *host.ToDevice(kFirst);
  const std::shared_ptr<Buffer> memory =
      *devices_.Allocate(kFirst, host.byte_size() + 8);
  for (const size_t at : {0, 1, 4, 8}) {
    const auto part = Buffer::PartOf(memory, at, host.byte_size());
    const CopyOnDevice copy = {there.buffer().get(), part.get(),
                               host.byte_size()};
    ASSERT_TRUE(devices_.Copy(absl::MakeConstSpan(&copy, 1)).ok());
    const Tensor sent = *Tensor::FromBuffer(DType::kF64, {20000}, part);
    const auto got = Decode(*Encode(Named("w", sent), {}, false), nullptr, {},
                            DeviceTensors::kKeep);
    ASSERT_TRUE(got.ok()) << got.status();
    const Tensor& kept = got->tensors[0].tensor;
    EXPECT_EQ(kept.device(), at % 8 == 0 ? kFirst : Device()) << at;
    EXPECT_TRUE(kept.IsAligned()) << at;
    EXPECT_EQ(kept.ToHost()->bytes(), host.bytes());
  }
}

TEST_F(DeviceSlices, AKeptTensorOutlivesItsMessageAndLetsGo) {
  const std::string bytes = Bytes(100000, 3);
  auto message = std::make_unique<grpc::ByteBuffer>(InParts(bytes, {}));
  auto kept = Decode(*message, nullptr, {}, DeviceTensors::kKeep);
  ASSERT_TRUE(kept.ok()) << kept.status();
  message.reset();
  EXPECT_EQ(kept->tensors[0].tensor.ToHost()->bytes(), bytes);
  kept->tensors.clear();
  EXPECT_EQ(devices_.allocations(), 0u);
}

TEST_F(DeviceSlices, AllCopiesOfAMessageAreOfThreeBatchesAtMost) {
  Bundle there;
  std::vector<Destination> places;
  const Device devices[] = {Device(), kFirst, kSecond};
  for (int i = 0; i < 18; ++i) {
    const std::string name = absl::StrCat("t", i);
    const Tensor tensor = OnHost(Bytes(70000 + i, i));
    there.tensors.push_back({name, *tensor.ToDevice(devices[i % 3])});
    if (i % 2 == 0) places.push_back({name, Place(tensor, devices[i / 3 % 3])});
  }
  const grpc::ByteBuffer message = *Encode(there, {}, false);
  const int copies = devices_.copies();
  const auto got = Decode(message, nullptr, absl::MakeSpan(places));
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(devices_.copies(), copies + 3);
  for (int i = 0; i < 18; ++i) {
    EXPECT_EQ(got->tensors[i].tensor.ToHost()->bytes(), Bytes(70000 + i, i));
  }
  for (const Destination& place : places) {
    EXPECT_TRUE(place.used.ok()) << place.used;
    EXPECT_FALSE(place.landed);
  }
}

TEST_F(DeviceSlices, ATensorInSeveralSlicesIsCopiedToTheHost) {
  const std::string bytes = Bytes(100000, 3);
  for (const auto& parts : std::vector<std::vector<size_t>>{
           {50000}, {1}, {99999}, {1, 2, 3}, {33333, 33333, 1}}) {
    for (const DeviceTensors how :
         {DeviceTensors::kKeep, DeviceTensors::kToHost}) {
      const auto got = Decode(InParts(bytes, parts), nullptr, {}, how);
      ASSERT_TRUE(got.ok()) << got.status();
      EXPECT_EQ(got->tensors[0].tensor.bytes(), bytes);
    }
    for (const Device& device : {Device(), kFirst, kSecond}) {
      std::vector<Destination> places = {{"w", Place(OnHost(bytes), device)}};
      const auto got =
          Decode(InParts(bytes, parts), nullptr, absl::MakeSpan(places));
      ASSERT_TRUE(got.ok()) << got.status();
      EXPECT_TRUE(places[0].used.ok()) << places[0].used;
      EXPECT_EQ(got->tensors[0].tensor.buffer(), places[0].into.buffer());
      EXPECT_EQ(places[0].into.ToHost()->bytes(), bytes);
    }
  }
}

TEST_F(DeviceSlices, ADestinationIsOverwrittenOnceItsStreamHasReadIt) {
  const std::string bytes = Bytes(100000, 3);
  const Tensor memory = Place(OnHost(bytes));
  const char* const there = devices_.Peek(memory.buffer()->device_address());
  char before = 'x';
  devices_.Queue(kFirst, kStream, [&] { before = there[1]; });
  std::vector<Destination> places = {
      {"w",
       *Tensor::FromBuffer(
           DType::kUint8, memory.shape(),
           Buffer::After(memory.buffer(), *devices_.Record(kFirst, kStream)))}};
  ASSERT_TRUE(Decode(InParts(bytes, {}), nullptr, absl::MakeSpan(places)).ok());
  EXPECT_EQ(before, '\0');
  EXPECT_EQ(memory.ToHost()->bytes(), bytes);
}

TEST_F(DeviceSlices, AChecksumIsOfACopyThatNobodyElseHas) {
  const std::string bytes = Bytes(100000, 3);
  const std::string flat =
      devices_.Flat(*Encode(Named("w", OnHost(bytes)), {}, true));
  const size_t begin = flat.find(bytes);
  for (const bool is_right : {true, false}) {
    std::string sent = bytes;
    if (!is_right) sent[77777] ^= 1;
    Slices slices(&devices_);
    slices.AddHost(absl::string_view(flat).substr(0, begin));
    slices.Add(kFirst, sent);
    slices.AddHost(absl::string_view(flat).substr(begin + bytes.size()));
    const auto got =
        Decode(slices.Message(), nullptr, {}, DeviceTensors::kKeep);
    if (is_right) {
      ASSERT_TRUE(got.ok()) << got.status();
      EXPECT_EQ(got->tensors[0].tensor.bytes(), bytes);
    } else {
      EXPECT_EQ(got.status().code(), absl::StatusCode::kDataLoss);
    }
  }
}

TEST_F(DeviceSlices, ACopyThatFailsIsWhatTheMessageEndsWith) {
  const std::string bytes = Bytes(100000, 3);
  for (const auto& parts : std::vector<std::vector<size_t>>{{}, {50000}}) {
    const grpc::ByteBuffer message = InParts(bytes, parts);
    std::vector<Destination> places = {{"w", Place(OnHost(bytes), kSecond)}};
    devices_.FailAfter(0);
    const auto failed = Decode(message, nullptr, absl::MakeSpan(places));
    EXPECT_TRUE(absl::IsInternal(failed.status())) << failed.status();
    EXPECT_FALSE(places[0].used.ok());
    devices_.FailAfter(0);
    EXPECT_TRUE(absl::IsInternal(Decode(message).status()));
    const auto got = Decode(message, nullptr, absl::MakeSpan(places));
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_EQ(places[0].into.ToHost()->bytes(), bytes);
  }
}

TEST_F(DeviceSlices, WhatHasLandedOnADeviceIsNotCopied) {
  const std::string bytes = Bytes(100000, 3);
  std::vector<Destination> places = {{"w", Place(OnHost(bytes))}};
  const grpc::ByteBuffer message =
      Lander(&devices_, &places).Land(InParts(bytes, {}), [](size_t) {
        return 0;
      });
  const int calls = devices_.calls();
  const auto got = Decode(message, nullptr, absl::MakeSpan(places));
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(devices_.calls(), calls);
  EXPECT_TRUE(places[0].landed);
  EXPECT_TRUE(places[0].used.ok());
  EXPECT_EQ(places[0].into.ToHost()->bytes(), bytes);
}

}  // namespace
}  // namespace penstock::tensor
