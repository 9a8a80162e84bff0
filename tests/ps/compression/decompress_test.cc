#include "ps/compression/decompress.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "ps/compression/lists.h"
#include "ps/optim/workers.h"
#include "tests/ps/compression/tensors.h"
#include "tests/ps/seeds.h"

namespace penstock::ps::compression {
namespace {

using tensor::DType;
using tensor::Shape;
using tensor::Tensor;
using List = std::vector<Tensor>;

absl::StatusOr<Tensor> Undo(const Shape& shape, const List& list) {
  static const auto* const kWorkers = new optim::Workers(2);
  return Decompress(shape, list, *kWorkers);
}

// Returns the message for a list that is refused for shape [2,3].
std::string Refused(const List& list) {
  const absl::Status status = Undo({2, 3}, list).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  const std::string begin = "gradient of shape [2,3]: ";
  EXPECT_EQ(status.message().substr(0, begin.size()), begin);
  return std::string(
      status.message().substr(std::min(begin.size(), status.message().size())));
}

Tensor Zeros(DType dtype, Shape shape) {
  Tensor zeros = Tensor::Allocate(dtype, std::move(shape)).value();
  std::fill_n(zeros.buffer()->mutable_data(), zeros.byte_size(), '\0');
  return zeros;
}

List At(const std::vector<int32_t>& indices) {
  return {VectorOf(indices), VectorOf(std::vector<float>(indices.size(), 1))};
}

List Scaled(float scale) {
  return {Zeros(DType::kInt8, {2, 3}), VectorOf<float>({scale})};
}

TEST(DecompressTest, FloatingTensorsPassAsTheyAre) {
  for (const DType dtype :
       {DType::kF32, DType::kF64, DType::kF16, DType::kBF16}) {
    const Tensor gradient = Unaligned(Zeros(dtype, {2, 3}));
    EXPECT_EQ(Undo({2, 3}, {gradient})->bytes().data(),
              gradient.bytes().data());
  }
}

TEST(DecompressTest, ElementsComeToTheirIndicesAndOthersAre0) {
  const List list = {
      VectorOf<int32_t>({0, 2, 5}),
      VectorOf<tensor::BFloat16>({{0x3F80}, {0xC000}, {0x4040}})};
  for (const List& one : {list, List{Unaligned(list[0]), Unaligned(list[1])}}) {
    const Tensor gradient = Undo({2, 3}, one).value();
    EXPECT_EQ(gradient.ToString(), "f32[2,3]");
    EXPECT_EQ(NumbersOf(gradient), (std::vector<double>{1, 0, -2, 0, 0, 3}));
  }
  EXPECT_EQ(NumbersOf(*Undo({2}, At({}))), (std::vector<double>{0, 0}));
}

TEST(DecompressTest, ElementsAreTimesTheirBlocksScale) {
  std::vector<int8_t> elements(kBlock + 2);
  elements[0] = -128;
  elements[kBlock - 1] = 3;
  elements[kBlock] = 127;
  const List list = {VectorOf(elements), VectorOf<float>({0.5F, 2})};
  for (const List& one : {list, List{Unaligned(list[0]), Unaligned(list[1])}}) {
    const auto numbers = NumbersOf(*Undo({kBlock + 2}, one));
    EXPECT_EQ(numbers[0], -64);
    EXPECT_EQ(numbers[1], 0);
    EXPECT_EQ(numbers[kBlock - 1], 1.5);
    EXPECT_EQ(numbers[kBlock], 254);
  }
}

TEST(DecompressTest, OtherListsAreRefused) {
  const Tensor f32 = Zeros(DType::kF32, {2, 3});
  EXPECT_EQ(Refused({}), "it is one or two tensors, not 0");
  EXPECT_EQ(Refused({f32, f32, f32}), "it is one or two tensors, not 3");
  EXPECT_EQ(Refused({f32, f32}),
            "the first of two tensors is int32 or int8, not f32[2,3]");
  for (const DType dtype : {DType::kInt8, DType::kInt16, DType::kInt32,
                            DType::kInt64, DType::kUint8, DType::kBool}) {
    EXPECT_EQ(Refused({Zeros(dtype, {2, 3})}),
              "a single tensor is f32, f64, f16 or bf16, not " +
                  Zeros(dtype, {2, 3}).ToString());
  }
  for (const Shape& shape :
       {Shape{}, Shape{0}, Shape{6}, Shape{3, 2}, Shape{2, 3, 1}}) {
    EXPECT_EQ(Refused({Zeros(DType::kF32, shape)}),
              Zeros(DType::kF32, shape).ToString() + " has another shape");
  }
}

TEST(DecompressTest, OtherIndicesAreRefused) {
  EXPECT_EQ(Refused(At({-1})), "index 0 is -1, negative");
  EXPECT_EQ(Refused(At({0, 6})), "an index is 6, but there are 6 elements");
  EXPECT_EQ(Refused(At({0, INT32_MAX})),
            "an index is 2147483647, but there are 6 elements");
  EXPECT_EQ(Refused(At({1, 1})), "index 1 is 1 after 1; they must ascend");
  EXPECT_EQ(Refused(At({0, 3, 2})), "index 2 is 2 after 3; they must ascend");
  EXPECT_EQ(Refused(At({0, 3, -9})), "index 2 is -9 after 3; they must ascend");
  EXPECT_EQ(Refused(At({0, 1, 2, 3, 4, 5, 6})),
            "indices are int32[k] with k from 0 to 6, not int32[7]");
  EXPECT_EQ(Refused({Zeros(DType::kInt32, {1, 1}), Zeros(DType::kF32, {1})}),
            "indices are int32[k] with k from 0 to 6, not int32[1,1]");
  EXPECT_EQ(Refused({Zeros(DType::kInt32, {}), Zeros(DType::kF32, {1})}),
            "indices are int32[k] with k from 0 to 6, not int32[]");
}

TEST(DecompressTest, OtherValuesAreRefused) {
  for (const Tensor& values :
       {Zeros(DType::kF32, {2}), Zeros(DType::kF32, {0}),
        Zeros(DType::kF32, {}), Zeros(DType::kF32, {1, 1}),
        Zeros(DType::kF64, {1}), Zeros(DType::kInt8, {1})}) {
    EXPECT_EQ(Refused({Zeros(DType::kInt32, {1}), values}),
              "values at 1 indices are f32, f16 or bf16[1], not " +
                  values.ToString());
  }
}

TEST(DecompressTest, OtherScalesAreRefused) {
  EXPECT_EQ(Refused(Scaled(std::nanf(""))),
            "scale 0 is nan, not from 0 to 1e+18");
  EXPECT_EQ(Refused(Scaled(HUGE_VALF)), "scale 0 is inf, not from 0 to 1e+18");
  EXPECT_EQ(Refused(Scaled(-1)), "scale 0 is -1, not from 0 to 1e+18");
  EXPECT_EQ(Refused(Scaled(2e18F)), "scale 0 is 2e+18, not from 0 to 1e+18");
  const Tensor elements = Zeros(DType::kInt8, {2, 3});
  for (const Tensor& scales :
       {Zeros(DType::kF32, {0}), Zeros(DType::kF32, {2}),
        Zeros(DType::kF32, {}), Zeros(DType::kF64, {1})}) {
    EXPECT_EQ(Refused({elements, scales}),
              "scales are f32[1], one for each 256 elements, not " +
                  scales.ToString());
  }
  EXPECT_EQ(Refused({Zeros(DType::kInt8, {6}), Zeros(DType::kF32, {1})}),
            "int8[6] has another shape");
}

// Tests a short list for a part that is larger than any memory. The list is
// checked before any allocation.
TEST(DecompressTest, NothingIsAllocatedForABadList) {
  const Shape huge = {int64_t{1} << 55};
  EXPECT_EQ(Undo(huge, At({1, 0})).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Undo(huge, {Zeros(DType::kInt8, {1}), VectorOf<float>({1})})
                .status()
                .code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Undo(huge, At({0, 1})).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Undo({-1}, At({})).status().code(),
            absl::StatusCode::kInvalidArgument);
}

// Uses enough indices for several threads.
TEST(DecompressTest, RandomListsAreWhatALoopMakesOfThem) {
  RunEachSeed([](uint64_t seed) {
    std::mt19937_64 random(seed);
    const size_t count = 1 + random() % 200'000;
    std::vector<int32_t> indices;
    std::vector<double> expected(count);
    indices.reserve(count);
    const uint64_t one_in = 1 + random() % 20;
    for (size_t i = 0; i < count; ++i) {
      if (random() % one_in == 0) indices.push_back(static_cast<int32_t>(i));
    }
    const std::vector<float> values = NormalFloats(indices.size(), &random);
    for (size_t i = 0; i < indices.size(); ++i) {
      expected[static_cast<size_t>(indices[i])] = values[i];
    }
    const auto gradient = Undo({static_cast<int64_t>(count)},
                               {VectorOf(indices), VectorOf(values)});
    ASSERT_EQ(NumbersOf(*gradient), expected);
  });
}

}  // namespace
}  // namespace penstock::ps::compression

int main(int argc, char** argv) {
  return penstock::ps::RunWithSeeds(argc, argv, 20);
}
