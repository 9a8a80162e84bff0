// Tests messages with parts on a device, cut and placed randomly: Decode() of
// arbitrary messages.

#include <algorithm>
#include <random>
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
#include "tests/tensor_service/device_messages.h"
#include "tests/tensor_service/fake_device.h"
#include "tests/tensor_service/random_bundle.h"

namespace penstock::tensor {
namespace {

// Tests tensors of one size, on devices and on the host, in random destinations
// of this size. Each tensor must end in its own destination only.
TEST_F(DeviceSlices, RandomLandingsAreSortedOut) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  const Device devices[] = {Device(), kFirst, kSecond};
  for (int round = 0; round < 300; ++round) {
    const size_t size = random() % 2 == 0 ? kLendAtLeast : 2000;
    Bundle bundle;
    std::vector<Destination> places;
    Slices slices(&devices_);
    for (size_t i = 0, n = 1 + random() % 6; i < n; ++i) {
      const std::string name = absl::StrCat("t", i);
      const std::string bytes = Bytes(size, static_cast<char>(round + i));
      bundle.tensors.push_back({name, OnHost(bytes)});
      if (random() % 4 > 0) {
        places.push_back(
            {name, Place(bundle.tensors[i].tensor, devices[random() % 3])});
      }
      const std::string flat =
          devices_.Flat(*Encode(Named(name, bundle.tensors[i].tensor)));
      const size_t begin = flat.find(bytes);
      slices.AddHost(absl::string_view(flat).substr(0, begin));
      slices.Add(devices[random() % 3], bytes);
      slices.AddHost(absl::string_view(flat).substr(begin + size));
    }
    std::shuffle(places.begin(), places.end(), random);
    const grpc::ByteBuffer message =
        Lander(&devices_, &places).Land(slices.Message(), [&](size_t n) {
          return n == 0 ? 0 : random() % (n + 1);
        });
    const auto how =
        random() % 2 == 0 ? DeviceTensors::kKeep : DeviceTensors::kToHost;
    const auto got = Decode(message, nullptr, absl::MakeSpan(places), how);
    ASSERT_TRUE(got.ok()) << got.status();
    for (const Destination& place : places) {
      EXPECT_TRUE(place.used.ok()) << place.used;
      EXPECT_EQ(place.into.ToHost()->bytes(), bundle.Find(place.name)->bytes());
    }
    for (size_t i = 0; i < bundle.tensors.size(); ++i) {
      EXPECT_EQ(got->tensors[i].tensor.ToHost()->bytes(),
                bundle.tensors[i].tensor.bytes())
          << "round " << round << ", tensor " << i;
    }
  }
}

// Divides `flat` at random, and puts each part into a random device or the
// host.
class RandomCutter {
 public:
  RandomCutter(FakeDevices* devices, std::mt19937* random)
      : devices_(devices), random_(random) {}

  // The ranges [begin, end) of `movable` that may move to a device.
  using Ranges = std::vector<std::pair<size_t, size_t>>;
  grpc::ByteBuffer Cut(absl::string_view flat, const Ranges& movable) {
    Slices slices(devices_);
    size_t at = 0;
    for (const auto& [begin, end] : movable) {
      CutRange(flat.substr(at, begin - at), /*here=*/true, &slices);
      CutRange(flat.substr(begin, end - begin), /*here=*/false, &slices);
      at = end;
    }
    CutRange(flat.substr(at), /*here=*/true, &slices);
    return slices.Message();
  }

 private:
  void CutRange(absl::string_view bytes, bool here, Slices* slices) {
    const Device devices[] = {
        Device(), {Device::Kind::kCuda, 0}, {Device::Kind::kCuda, 1}};
    const bool is_whole = (*random_)() % 2 == 0;
    const size_t longest = 1 + (*random_)() % (bytes.size() + 1);
    while (!bytes.empty()) {
      const size_t size =
          is_whole ? bytes.size()
                   : std::min<size_t>(bytes.size(), 1 + (*random_)() % longest);
      slices->Add(here ? Device() : devices[(*random_)() % 3],
                  bytes.substr(0, size));
      bytes.remove_prefix(size);
    }
  }

  FakeDevices* const devices_;
  std::mt19937* const random_;
};

// Returns the ranges of the tensors' elements in the message.
RandomCutter::Ranges ElementsIn(absl::string_view flat, const Bundle& bundle) {
  RandomCutter::Ranges ranges;
  size_t from = 0;
  for (const NamedTensor& named : bundle.tensors) {
    const absl::string_view bytes = named.tensor.bytes();
    if (bytes.size() < 64) continue;  // short bytes may occur elsewhere, too
    const size_t begin = flat.find(bytes, from);
    if (begin == absl::string_view::npos) continue;
    from = begin + bytes.size();
    ranges.push_back({begin, from});
  }
  return ranges;
}

class RandomDeviceSlices : public DeviceSlices {
 protected:
  std::vector<Destination> PlacesFor(const Bundle& bundle) {
    const Device devices[] = {Device(), kFirst, kSecond};
    std::vector<Destination> places;
    for (const NamedTensor& named : bundle.tensors) {
      const size_t where = random_() % 4;
      if (where == 3) continue;
      places.push_back({named.name, Place(named.tensor, devices[where])});
    }
    return places;
  }
  Bundle Here() {
    return RandomBundle(&random_, size_t{1} << (random_() % 18),
                        HeapAllocator(), HeapAllocator());
  }
  DeviceTensors How() {
    return random_() % 2 == 0 ? DeviceTensors::kKeep : DeviceTensors::kToHost;
  }
  static void ExpectSame(const Bundle& got, const Bundle& sent) {
    ASSERT_EQ(got.tensors.size(), sent.tensors.size());
    for (size_t i = 0; i < sent.tensors.size(); ++i) {
      const auto here = got.tensors[i].tensor.ToHost();
      ASSERT_TRUE(here.ok()) << here.status();
      EXPECT_EQ(got.tensors[i].name, sent.tensors[i].name);
      EXPECT_EQ(here->dtype(), sent.tensors[i].tensor.dtype());
      EXPECT_EQ(here->shape(), sent.tensors[i].tensor.shape());
      EXPECT_EQ(here->bytes(), sent.tensors[i].tensor.bytes());
    }
  }

  const unsigned seed_ = std::random_device()();
  testing::ScopedTrace trace_{__FILE__, __LINE__, absl::StrCat("seed ", seed_)};
  std::mt19937 random_{seed_};
  RandomCutter cutter_{&devices_, &random_};
};

TEST_F(RandomDeviceSlices, WhatIsEncodedThereIsWhatIsEncodedHere) {
  const Device devices[] = {Device(), kFirst, kSecond};
  for (int round = 0; round < 150; ++round) {
    const Bundle here = Here();
    Bundle there = here;
    for (NamedTensor& named : there.tensors) {
      named.tensor = *named.tensor.ToDevice(devices[random_() % 3]);
    }
    devices_.LetLend(random_() % 3);
    const bool checksums = random_() % 4 == 0;
    const auto message = Encode(there, "h", checksums);
    ASSERT_TRUE(message.ok()) << message.status();
    EXPECT_EQ(devices_.Flat(*message),
              devices_.Flat(*Encode(here, "h", checksums)));
    std::vector<Destination> places = PlacesFor(here);
    std::string header;
    const auto got = Decode(*message, &header, absl::MakeSpan(places), How());
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_EQ(header, "h");
    ExpectSame(*got, here);
    for (const Destination& place : places) {
      EXPECT_TRUE(place.used.ok()) << place.used;
    }
  }
}

TEST_F(RandomDeviceSlices, ElementsMayLieAnywhereInAnyParts) {
  for (int round = 0; round < 300; ++round) {
    const Bundle bundle = Here();
    const std::string flat =
        devices_.Flat(*Encode(bundle, "h", random_() % 4 == 0));
    const grpc::ByteBuffer message =
        cutter_.Cut(flat, ElementsIn(flat, bundle));
    std::vector<Destination> places = PlacesFor(bundle);
    std::string header;
    const auto got = Decode(message, &header, absl::MakeSpan(places), How());
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_EQ(header, "h");
    ExpectSame(*got, bundle);
    for (const Destination& place : places) {
      EXPECT_TRUE(place.used.ok()) << place.used;
    }
  }
}

// Tests headers on devices, truncated messages, and changed bytes: a message
// that cannot be decoded on the host cannot be decoded here. Other messages
// give the same result, or are refused.
TEST_F(RandomDeviceSlices, NoLayoutIsReadWrongly) {
  int refused = 0;
  int read = 0;
  for (int round = 0; round < 1000; ++round) {
    const Bundle bundle = Here();
    std::string flat = devices_.Flat(*Encode(bundle, "h", random_() % 4 == 0));
    RandomCutter::Ranges movable = ElementsIn(flat, bundle);
    if (random_() % 2 == 0) {  // moves random ranges instead of elements
      movable.clear();
      for (size_t at = 0; at < flat.size();) {
        const size_t begin = at + random_() % (flat.size() - at);
        const size_t end =
            begin + 1 + random_() % (random_() % 2 == 0 ? 4 : flat.size());
        movable.push_back({begin, std::min(end, flat.size())});
        at = end;
      }
    }
    if (random_() % 4 == 0) {
      flat.resize(random_() % flat.size());
      movable.clear();
      if (!flat.empty()) movable.push_back({flat.size() / 2, flat.size()});
    }
    for (size_t n = random_() % 4; n > 0 && !flat.empty(); --n) {
      flat[random_() % std::min<size_t>(flat.size(), 200)] =
          static_cast<char>(random_());
    }
    const grpc::Slice whole(flat.data(), flat.size());
    const auto oracle = Decode(grpc::ByteBuffer(&whole, 1));
    std::vector<Destination> places = PlacesFor(bundle);
    const auto got = Decode(cutter_.Cut(flat, movable), nullptr,
                            absl::MakeSpan(places), How());
    if (!got.ok()) {
      EXPECT_TRUE(absl::IsInvalidArgument(got.status()) ||
                  got.status().code() == absl::StatusCode::kDataLoss)
          << got.status();
      ++refused;
      continue;
    }
    ++read;
    ASSERT_TRUE(oracle.ok()) << oracle.status();
    ExpectSame(*got, *oracle);
  }
  EXPECT_GT(refused, 100);
  EXPECT_GT(read, 100);
}

TEST_F(RandomDeviceSlices, AFailureOfADevicesIsTheErrorAndLeavesNothing) {
  int failed = 0;
  for (int round = 0; round < 200; ++round) {
    const Bundle bundle = Here();
    const std::string flat = devices_.Flat(*Encode(bundle));
    const grpc::ByteBuffer message =
        cutter_.Cut(flat, ElementsIn(flat, bundle));
    std::vector<Destination> places = PlacesFor(bundle);
    devices_.FailAfter(random_() % 4);
    const auto got = Decode(message, nullptr, absl::MakeSpan(places), How());
    EXPECT_EQ(got.ok(), !devices_.has_failed()) << got.status();
    failed += devices_.has_failed() ? 1 : 0;
    devices_.FailAfter(-1);
    ASSERT_TRUE(Decode(message, nullptr, absl::MakeSpan(places), How()).ok());
  }
  EXPECT_GT(failed, 10);
}

}  // namespace
}  // namespace penstock::tensor
