#include "tensor_service/destination.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "tensor_service/codec.h"
#include "tensor_service/tensor.pb.h"
#include "tests/tensor_service/random_bundle.h"

namespace penstock::tensor {
namespace {

std::string Flat(const grpc::ByteBuffer& message) {
  grpc::Slice slice;
  EXPECT_TRUE(message.DumpToSingleSlice(&slice).ok());
  return std::string(reinterpret_cast<const char*>(slice.begin()),
                     slice.size());
}

// Returns the message in slices of up to `most` bytes.
grpc::ByteBuffer InSlices(const std::string& bytes, size_t most) {
  std::vector<grpc::Slice> slices;
  for (size_t at = 0; at < bytes.size(); at += most) {
    slices.emplace_back(bytes.substr(at, most));
  }
  return grpc::ByteBuffer(slices.data(), slices.size());
}

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

TEST(Destination, TensorIsReceivedIntoTheCallersMemory) {
  float memory[3] = {};
  std::vector<Destination> places;
  places.emplace_back(
      "w", *Tensor::FromBuffer(DType::kF32, {3},
                               Buffer::Wrap(memory, sizeof(memory),
                                            /*writable=*/true, [] {})));
  const auto got =
      Decode(*Encode(Floats("w", {1, 2, 3})), nullptr, absl::MakeSpan(places));
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_TRUE(places[0].used.ok()) << places[0].used;
  EXPECT_EQ(memory[2], 3);
  EXPECT_EQ(static_cast<const void*>(got->tensors[0].tensor.bytes().data()),
            memory);
}

// Returns the destination's `used` after a tensor [3] named "w".
absl::Status UsedFor(Destination place) {
  std::vector<Destination> places = {std::move(place)};
  const auto got =
      Decode(*Encode(Floats("w", {1, 2, 3})), nullptr, absl::MakeSpan(places));
  EXPECT_TRUE(got.ok()) << got.status();
  EXPECT_EQ((*got->tensors[0].tensor.flat<float>())[2], 3);
  if (!places[0].used.ok() && places[0].into.byte_size() > 0) {
    EXPECT_NE(got->tensors[0].tensor.bytes().data(),
              places[0].into.bytes().data());
  }
  return places[0].used;
}

TEST(Destination, OneThatDoesNotFitIsLeftAndSaysWhy) {
  const absl::Status small = UsedFor({"w", Empty({2})});
  EXPECT_TRUE(absl::IsInvalidArgument(small));
  EXPECT_NE(small.message().find("f32[2]"), std::string::npos) << small;
  EXPECT_NE(small.message().find("f32[3]"), std::string::npos) << small;
  EXPECT_TRUE(absl::IsInvalidArgument(UsedFor({"w", Empty({3, 1})})));
  EXPECT_TRUE(absl::IsInvalidArgument(UsedFor({"w", Empty({0})})));
  EXPECT_TRUE(absl::IsInvalidArgument(
      UsedFor({"w", *Tensor::Allocate(DType::kInt32, {3})})));
  EXPECT_TRUE(absl::IsNotFound(UsedFor({"v", Empty({3})})));
  EXPECT_TRUE(absl::IsFailedPrecondition(
      UsedFor({"w", *Tensor::FromSlice(DType::kF32, {3},
                                       grpc::Slice(std::string(12, 'x')))})));
}

TEST(Destination, OfTwoWithOneNameTheFirstIsUsed) {
  std::vector<Destination> places = {{"w", Empty({1})}, {"w", Empty({1})}};
  ASSERT_TRUE(
      Decode(*Encode(Floats("w", {5})), nullptr, absl::MakeSpan(places)).ok());
  EXPECT_TRUE(places[0].used.ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(places[1].used));
}

TEST(Destination, OfTwoTensorsWithOneNameTheFirstIsPlaced) {
  Bundle bundle = Floats("w", {1});
  bundle.tensors.push_back(Floats("w", {2}).tensors[0]);
  std::vector<Destination> places = {{"w", Empty({1})}};
  const auto got = Decode(*Encode(bundle), nullptr, absl::MakeSpan(places));
  ASSERT_TRUE(got.ok());
  EXPECT_EQ((*places[0].into.flat<float>())[0], 1);
  EXPECT_EQ((*got->tensors[1].tensor.flat<float>())[0], 2);
}

// Returns a tag, a length and the bytes.
std::string Field(char tag, const std::string& value) {
  return std::string(1, tag) + static_cast<char>(value.size()) + value;
}

// Tests any order of fields, and repetitions, as protobuf allows.
TEST(Destination, FieldsMayComeInAnyOrder) {
  const std::string dtype = "\x08\x01";
  const std::string shape = Field('\x12', "\x02");
  const std::string data = Field('\x22', "abcdefgh");
  const std::string name = Field('\x0a', "w");
  const std::string no_data = Field('\x22', "no");
  for (const std::string& tensor :
       {absl::StrCat(name, Field('\x12', absl::StrCat(data, shape, dtype))),
        absl::StrCat(Field('\x12', absl::StrCat(dtype, data, shape)), name),
        absl::StrCat(
            name, Field('\x12', absl::StrCat(dtype, shape, no_data, data)))}) {
    const std::string message = Field('\x0a', tensor);
    for (size_t most : {1, 3, 100}) {
      std::vector<Destination> places = {{"w", Empty({2})}};
      const auto got =
          Decode(InSlices(message, most), nullptr, absl::MakeSpan(places));
      ASSERT_TRUE(got.ok()) << got.status();
      EXPECT_TRUE(places[0].used.ok()) << places[0].used;
      EXPECT_EQ(places[0].into.bytes(), "abcdefgh");
    }
  }
}

// Tests a tensor whose first fields match a destination, while a later field
// does not match.
TEST(Destination, TensorThatTurnsOutToBeAnotherIsTakenOutAgain) {
  const std::string data = Field('\x22', "abcd");
  const std::string scalar = Field('\x12', "\x08\x01" + data);
  for (const std::string& message :
       // A shape at the end shows that the tensor is no scalar.
       {Field('\x0a',
              Field('\x0a', "w") +
                  Field('\x12', "\x08\x01" + data + Field('\x12', "\x01"))),
        // A message whose second name replaces the first one.
        Field('\x0a', Field('\x0a', "w") + scalar + Field('\x0a', "v"))}) {
    std::vector<Destination> places = {{"w", Empty({})}};
    const auto got =
        Decode(InSlices(message, 100), nullptr, absl::MakeSpan(places));
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_FALSE(places[0].used.ok());
    EXPECT_EQ(got->tensors[0].tensor.bytes(), "abcd");
    EXPECT_NE(got->tensors[0].tensor.bytes().data(),
              places[0].into.bytes().data());
  }
}

TEST(Destination, RandomBundlesAreTheSameWithAndWithout) {
  for (unsigned seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937 random(seed);
    const Bundle bundle =
        RandomBundle(&random, 5000, HeapAllocator(), HeapAllocator());
    std::vector<Destination> places;
    for (const NamedTensor& named : bundle.tensors) {
      if (random() % 3 == 0) continue;
      Shape shape = named.tensor.shape();
      const bool fits = random() % 4 > 0;
      if (!fits) shape.push_back(2);
      places.emplace_back(named.name,
                          *Tensor::Allocate(named.tensor.dtype(), shape));
    }
    const std::string bytes = Flat(*Encode(bundle, "", random() % 2 == 0));
    const auto got = Decode(InSlices(bytes, 1 + random() % 9000), nullptr,
                            absl::MakeSpan(places));
    ASSERT_TRUE(got.ok()) << got.status();
    for (size_t i = 0; i < bundle.tensors.size(); ++i) {
      EXPECT_EQ(got->tensors[i].tensor.bytes(),
                bundle.tensors[i].tensor.bytes());
    }
    for (const Destination& place : places) {
      const Tensor& tensor = *got->Find(place.name);
      EXPECT_EQ(place.used.ok(), place.into.shape() == tensor.shape());
      EXPECT_EQ(place.used.ok(), place.into.buffer() == tensor.buffer());
    }
  }
}

TEST(Destination, MalformedMessageIsAnErrorAndNoCrash) {
  const std::string sent = Flat(*Encode(Floats("w", std::vector<float>(9, 1))));
  for (size_t size = 1; size < sent.size(); ++size) {
    std::vector<Destination> places = {{"w", Empty({9})}};
    EXPECT_FALSE(Decode(InSlices(sent.substr(0, size), 7), nullptr,
                        absl::MakeSpan(places))
                     .ok());
    EXPECT_FALSE(places[0].used.ok());
  }
}

TEST(Destination, OfTwoWithMemoryInCommonTheFirstIsUsed) {
  float memory[6] = {};
  const auto place = [&](const char* name, int at, int64_t count) {
    return Destination(
        name,
        *Tensor::FromBuffer(
            DType::kF32, {count},
            Buffer::Wrap(memory + at, count * sizeof(float), true, [] {})));
  };
  Bundle bundle;
  std::vector<Destination> places;
  for (const auto& [name, at] :
       {std::make_pair("b", 2), {"a", 0}, {"c", 4}, {"d", 3}}) {
    places.push_back(place(name, at, 2));
    bundle.tensors.push_back(Floats(name, {1.f * at, 9}).tensors[0]);
  }
  places.push_back(place("e", 0, 6));
  const auto got = Decode(*Encode(bundle), nullptr, absl::MakeSpan(places));
  ASSERT_TRUE(got.ok()) << got.status();
  for (int i : {0, 1, 2}) EXPECT_TRUE(places[i].used.ok()) << places[i].used;
  EXPECT_TRUE(absl::IsFailedPrecondition(places[3].used)) << places[3].used;
  EXPECT_TRUE(absl::IsFailedPrecondition(places[4].used)) << places[4].used;
  EXPECT_EQ((*got->Find("d")->flat<float>())[0], 3);
  EXPECT_EQ(memory[4], 4);
}

}  // namespace
}  // namespace penstock::tensor
