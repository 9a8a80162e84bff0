// Tests messages that a transport has received into destinations, rightly or
// wrongly.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "tensor_service/codec.h"
#include "tensor_service/destination.h"

namespace penstock::tensor {
namespace {

Bundle Floats(const std::string& name, const std::vector<float>& values) {
  Bundle bundle;
  bundle.tensors.push_back(
      {name,
       *Tensor::Of<float>({static_cast<int64_t>(values.size())}, values)});
  return bundle;
}

Tensor Empty(Shape shape) {
  return *Tensor::Allocate(DType::kF32, std::move(shape));
}

// Imitates a transport that receives into destinations: puts slices into
// destinations of equal size, of any tensor.
class Lander {
 public:
  explicit Lander(absl::Span<Destination> places) : places_(places) {}

  // Puts slices of the message into destinations, each used once. Of n
  // candidates, choose(n) selects one or none.
  template <typename Choose>
  grpc::ByteBuffer Land(const grpc::ByteBuffer& message, Choose choose) {
    std::vector<grpc::Slice> slices;
    EXPECT_TRUE(message.Dump(&slices).ok());
    for (grpc::Slice& slice : slices) {
      std::vector<Destination*> fits;
      for (Destination& place : places_) {
        if (place.into.byte_size() == slice.size() && !taken_.count(&place)) {
          fits.push_back(&place);
        }
      }
      const size_t chosen = choose(fits.size());
      if (chosen >= fits.size()) continue;
      taken_.insert(fits[chosen]);
      char* const at = fits[chosen]->into.buffer()->mutable_data();
      memcpy(at, slice.begin(), slice.size());
      slice = grpc::Slice(at, slice.size(), [](void*) {});
    }
    return grpc::ByteBuffer(slices.data(), slices.size());
  }

 private:
  const absl::Span<Destination> places_;
  std::set<Destination*> taken_;
};

Bundle ThreeOfOneSize() {
  Bundle bundle;
  for (const char* name : {"a", "b", "c"}) {
    bundle.tensors.push_back(
        Floats(name, std::vector<float>(1000, *name)).tensors[0]);
  }
  return bundle;
}

TEST(LandedDestination, TensorThatLiesThereIsNotCopied) {
  std::vector<Destination> places = {
      {"a", Empty({1000})}, {"b", Empty({1000})}, {"c", Empty({1000})}};
  const grpc::ByteBuffer message =
      Lander(absl::MakeSpan(places))
          .Land(*Encode(ThreeOfOneSize()), [](size_t) { return 0; });
  const auto got = Decode(message, nullptr, absl::MakeSpan(places));
  ASSERT_TRUE(got.ok()) << got.status();
  for (const Destination& place : places) {
    EXPECT_TRUE(place.used.ok()) << place.used;
    EXPECT_TRUE(place.landed);
    EXPECT_EQ((*place.into.flat<float>())[999], place.name[0]);
    EXPECT_EQ(got->Find(place.name)->buffer(), place.into.buffer());
  }
}

TEST(LandedDestination, TensorsInOneAnothersPlacesAreSortedOut) {
  // Tries every permutation of the destinations.
  std::vector<const char*> order = {"a", "b", "c"};
  do {
    std::vector<Destination> places;
    for (const char* name : order) places.emplace_back(name, Empty({1000}));
    const grpc::ByteBuffer message =
        Lander(absl::MakeSpan(places))
            .Land(*Encode(ThreeOfOneSize()), [](size_t) { return 0; });
    const auto got = Decode(message, nullptr, absl::MakeSpan(places));
    ASSERT_TRUE(got.ok()) << got.status();
    for (int i = 0; i < 3; ++i) {
      EXPECT_TRUE(places[i].used.ok()) << places[i].used;
      EXPECT_EQ(places[i].landed, places[i].name[0] == 'a' + i);
      EXPECT_EQ((*places[i].into.flat<float>())[0], places[i].name[0]);
    }
  } while (std::next_permutation(
      order.begin(), order.end(),
      [](const char* a, const char* b) { return *a < *b; }));
}

TEST(LandedDestination, TensorLeavesThePlaceOfAnother) {
  std::vector<Destination> places = {{"d", Empty({1000})},
                                     {"c", Empty({1000})}};
  const grpc::ByteBuffer message =
      Lander(absl::MakeSpan(places))
          .Land(*Encode(ThreeOfOneSize()), [](size_t) { return 0; });
  const auto got = Decode(message, nullptr, absl::MakeSpan(places));
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_TRUE(absl::IsNotFound(places[0].used));
  EXPECT_FALSE(places[0].landed);
  memset(places[0].into.buffer()->mutable_data(), 0, 4000);
  EXPECT_EQ((*got->Find("a")->flat<float>())[0], 'a');
  EXPECT_EQ((*got->Find("b")->flat<float>())[0], 'b');
  EXPECT_TRUE(places[1].used.ok());
  EXPECT_FALSE(places[1].landed);
}

// Tests slices that span several destinations. No transport produces such a
// message, but slices may lie anywhere.
TEST(LandedDestination, MessageThatLiesAcrossPlacesIsMovedAway) {
  grpc::Slice flat;
  ASSERT_TRUE(Encode(ThreeOfOneSize())->DumpToSingleSlice(&flat).ok());
  const std::string bytes(flat.begin(), flat.end());
  for (size_t at : {0, 1, 3000, 5000}) {
    const Tensor memory =
        *Tensor::Allocate(DType::kUint8, {static_cast<int64_t>(20000)});
    char* const data = memory.buffer()->mutable_data();
    std::vector<Destination> places;
    // Puts the first tensor into the second destination.
    constexpr size_t kPlaces[] = {4000, 0, 8000};
    for (int i : {2, 0, 1}) {
      places.emplace_back(std::string(1, 'a' + i),
                          *Tensor::FromBuffer(DType::kF32, {1000},
                                              Buffer::Wrap(data + kPlaces[i],
                                                           4000, true, [] {})));
    }
    memcpy(data + at, bytes.data(), bytes.size());
    const grpc::Slice slice(data + at, bytes.size(), [](void*) {});
    const auto got =
        Decode(grpc::ByteBuffer(&slice, 1), nullptr, absl::MakeSpan(places));
    ASSERT_TRUE(got.ok()) << got.status();
    for (const Destination& place : places) {
      EXPECT_TRUE(place.used.ok()) << place.used;
      EXPECT_FALSE(place.landed);
      EXPECT_EQ((*place.into.flat<float>())[0], place.name[0]);
      EXPECT_EQ((*place.into.flat<float>())[999], place.name[0]);
    }
  }
}

TEST(LandedDestination, RandomBundlesAreTheSameWithAndWithout) {
  for (unsigned seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937 random(seed);
    Bundle bundle;
    std::vector<Destination> places;
    const int count = 1 + random() % 10;
    for (int i = 0; i < count; ++i) {
      // Draws few sizes. Names repeat, and some have no destination.
      const std::string name(1, 'a' + random() % 12);
      const std::vector<float> values(300 * (random() % 3), 1000.f * i + 7);
      bundle.tensors.push_back(Floats(name, values).tensors[0]);
    }
    for (int i = 0; i < count; ++i) {
      places.emplace_back(std::string(1, 'a' + random() % 12),
                          Empty({300 * static_cast<int64_t>(random() % 3)}));
    }
    const grpc::ByteBuffer message =
        Lander(absl::MakeSpan(places))
            .Land(*Encode(bundle, random() % 2 == 0 ? "header" : "",
                          random() % 2 == 0),
                  [&](size_t n) { return random() % (n + 1); });
    const auto got = Decode(message, nullptr, absl::MakeSpan(places));
    ASSERT_TRUE(got.ok()) << got.status();
    ASSERT_EQ(got->tensors.size(), bundle.tensors.size());
    // Writes to destinations that received nothing. The program may use these
    // again.
    for (const Destination& place : places) {
      if (place.used.ok() || place.into.byte_size() == 0) continue;
      EXPECT_FALSE(place.landed);
      memset(place.into.buffer()->mutable_data(), 'x', place.into.byte_size());
    }
    for (size_t i = 0; i < bundle.tensors.size(); ++i) {
      EXPECT_TRUE(got->tensors[i].tensor.bytes() ==
                  bundle.tensors[i].tensor.bytes())
          << "tensor " << i;
    }
    for (const Destination& place : places) {
      const auto lies_there = [&](const NamedTensor& named) {
        return named.name == place.name &&
               named.tensor.buffer() == place.into.buffer();
      };
      EXPECT_EQ(
          std::any_of(got->tensors.begin(), got->tensors.end(), lies_there),
          place.used.ok());
    }
  }
}

}  // namespace
}  // namespace penstock::tensor
