// Messages of which parts lie on a device, in memory that the CPU cannot touch:
// what Encode() makes of tensors there, and what Decode() makes of whatever a
// peer may have sent.

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
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

std::string Bytes(size_t size, char first) {
  std::string bytes(size, '\0');
  for (size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<char>(first + i * 7 + (i >> 8));
  }
  return bytes;
}

Tensor OnHost(absl::string_view bytes) {
  Tensor tensor =
      *Tensor::Allocate(DType::kUint8, {static_cast<int64_t>(bytes.size())});
  if (!bytes.empty()) {
    memcpy(tensor.buffer()->mutable_data(), bytes.data(), bytes.size());
  }
  return tensor;
}

// The slices of a message, by which it is put together anew.
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

  // The message of one tensor of so many bytes, which lie on a device, all or
  // in parts of those sizes and whatever is left.
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
  // The CPU reads what has a checksum.
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

// What a transport does that receives into destinations on devices.
class Lander {
 public:
  Lander(FakeDevices* devices, std::vector<Destination>* places)
      : devices_(devices), places_(places) {}

  // Returns the message with slices in places of their size, as `choose(n)`
  // says: of n places, or not at all.
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

// Tensors of one size, on devices and here, in whichever places of that size:
// each ends in its own, and nowhere else.
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

// Cuts `flat` anywhere, and puts each part anywhere.
class RandomCutter {
 public:
  RandomCutter(FakeDevices* devices, std::mt19937* random)
      : devices_(devices), random_(random) {}

  // Of bytes of which all but [begin, end) of each of `movable` stay here.
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

// Where the elements of each tensor lie in the message.
RandomCutter::Ranges ElementsIn(absl::string_view flat, const Bundle& bundle) {
  RandomCutter::Ranges ranges;
  size_t from = 0;
  for (const NamedTensor& named : bundle.tensors) {
    const absl::string_view bytes = named.tensor.bytes();
    if (bytes.size() < 64) continue;  // they might be found elsewhere
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

// Headers on devices, messages that end too early, bytes that are others: what
// cannot be read on the host cannot be read here, and what can is the same, or
// refused.
TEST_F(RandomDeviceSlices, NoLayoutIsReadWrongly) {
  int refused = 0;
  int read = 0;
  for (int round = 0; round < 1000; ++round) {
    const Bundle bundle = Here();
    std::string flat = devices_.Flat(*Encode(bundle, "h", random_() % 4 == 0));
    RandomCutter::Ranges movable = ElementsIn(flat, bundle);
    if (random_() % 2 == 0) {  // somewhere else instead
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
