#include "ps/compression/compressor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "ps/compression/decompress.h"
#include "ps/compression/lists.h"
#include "ps/optim/workers.h"
#include "tests/ps/compression/tensors.h"
#include "tests/ps/optim/random_values.h"
#include "tests/ps/seeds.h"

namespace penstock::ps::compression {
namespace {

using Kind = CompressionSpec::Kind;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;

constexpr Kind kKinds[] = {Kind::kNone, Kind::kHalf, Kind::kTopK,
                           Kind::kRandomK, Kind::kInt8};

CompressionSpec SpecOf(Kind kind, DType dtype = DType::kBF16) {
  CompressionSpec spec;
  spec.kind = kind;
  spec.dtype = dtype;
  spec.ratio = 0.1;
  spec.seed = 3;
  return spec;
}

const optim::Workers& TheWorkers() {
  static const auto* const kWorkers = new optim::Workers(3);
  return *kWorkers;
}

std::unique_ptr<Compressor> Make(const CompressionSpec& spec, Shape shape) {
  return Compressor::Create(spec, "w", std::move(shape), &TheWorkers()).value();
}

std::vector<std::string> BytesOf(const std::vector<Tensor>& list) {
  std::vector<std::string> bytes;
  bytes.reserve(list.size());
  for (const Tensor& tensor : list) bytes.emplace_back(tensor.bytes());
  return bytes;
}

std::vector<double> RoundTrip(const CompressionSpec& spec,
                              const Tensor& gradient) {
  const auto list = Make(spec, gradient.shape())->Compress(gradient, 1).value();
  return NumbersOf(Decompress(gradient.shape(), list, TheWorkers()).value());
}

std::string MessageOf(const absl::Status& status) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

TEST(CompressorTest, RefusesWhatLiesOnADevice) {
  const Tensor there = *Tensor::FromBuffer(
      DType::kF32, {2},
      tensor::Buffer::WrapDevice({tensor::Device::Kind::kCuda, 0}, 64, 8,
                                 /*writable=*/false, nullptr));
  for (const Kind kind : kKinds) {
    const auto list = Make(SpecOf(kind), {2})->Compress(there, 1);
    EXPECT_TRUE(absl::IsFailedPrecondition(list.status())) << list.status();
  }
  EXPECT_TRUE(absl::IsFailedPrecondition(
      Decompress({2}, {there}, TheWorkers()).status()));
}

TEST(CompressorTest, NoneAndTheTypeItselfAreNotCopied) {
  const Tensor wide = Of<float>({2, 2}, {1, 2, 3, 4});
  const Tensor half = Of<tensor::BFloat16>({2}, {{0x3F80}, {0x4000}});
  EXPECT_EQ(Make(SpecOf(Kind::kNone), {2, 2})
                ->Compress(wide, 1)
                .value()[0]
                .bytes()
                .data(),
            wide.bytes().data());
  const auto list = Make(SpecOf(Kind::kHalf), {2})->Compress(half, 1).value();
  EXPECT_EQ(list[0].bytes().data(), half.bytes().data());
  EXPECT_EQ(Decompress({2}, list, TheWorkers()).value().bytes().data(),
            half.bytes().data());
}

// Tests the rounding of 16-bit types: bf16 has 8 digits, and f16 has 11, but
// none below 2^-24.
TEST(CompressorTest, HalvesAreWithinHalfAUnitOfTheirLastPlace) {
  std::mt19937_64 random(ChosenSeeds().first());
  const auto values = optim::RandomValues<float>(200'001, &random);
  const auto brain = RoundTrip(SpecOf(Kind::kHalf), VectorOf(values));
  const auto ieee =
      RoundTrip(SpecOf(Kind::kHalf, DType::kF16), VectorOf(values));
  for (size_t i = 0; i < values.size(); ++i) {
    const double x = values[i];
    ASSERT_LE(std::abs(brain[i] - x), std::ldexp(std::abs(x), -8)) << i;
    ASSERT_LE(std::abs(ieee[i] - x),
              std::max(std::ldexp(std::abs(x), -11), std::ldexp(1, -25)))
        << i;
  }
}

TEST(CompressorTest, Int8IsWithinAStepOfItsBlock) {
  std::mt19937_64 random(ChosenSeeds().first());
  const auto values = optim::RandomValues<float>(200'001, &random);
  const auto arrived = RoundTrip(SpecOf(Kind::kInt8), VectorOf(values));
  for (size_t begin = 0; begin < values.size(); begin += kBlock) {
    const size_t end = std::min(values.size(), begin + kBlock);
    double largest = 0;
    for (size_t i = begin; i < end; ++i) {
      largest = std::max(largest, double{std::abs(values[i])});
    }
    for (size_t i = begin; i < end; ++i) {
      ASSERT_LT(std::abs(arrived[i] - values[i]), largest / 127 * 1.000001)
          << i;
    }
  }
}

TEST(CompressorTest, TopKSendsTheLargestAsTheyAre) {
  const auto compressor = Make(SpecOf(Kind::kTopK, DType::kF32), {2, 10});
  std::vector<float> values(20, 0.5F);
  values[3] = -7;
  values[17] = 9;
  const auto list = compressor->Compress(Of({2, 10}, values), 1).value();
  EXPECT_EQ(ElementsOf<int32_t>(list[0]), (std::vector<int32_t>{3, 17}));
  EXPECT_EQ(ElementsOf<float>(list[1]), (std::vector<float>{-7, 9}));
}

// Tests that the element's own value is sent, not n / k times the value.
TEST(CompressorTest, RandomKDoesNotScale) {
  const auto compressor = Make(SpecOf(Kind::kRandomK, DType::kF32), {100});
  const auto list =
      compressor->Compress(VectorOf(std::vector<float>(100, 3)), 1).value();
  EXPECT_EQ(ElementsOf<float>(list[1]), std::vector<float>(10, 3));
}

TEST(CompressorTest, KIsTheRatioRoundedUp) {
  for (const auto& [ratio, count, k] :
       std::vector<std::tuple<double, int64_t, size_t>>{{1e-300, 5, 1},
                                                        {0.5, 5, 3},
                                                        {1, 5, 5},
                                                        {0.9999, 5, 5},
                                                        {0.5, 0, 0}}) {
    for (const Kind kind : {Kind::kTopK, Kind::kRandomK}) {
      CompressionSpec spec = SpecOf(kind);
      spec.ratio = ratio;
      const std::vector<float> ones(static_cast<size_t>(count), 1);
      const auto list =
          Make(spec, {count})->Compress(VectorOf(ones), 1).value();
      EXPECT_EQ(list[0].num_elements(), k) << ratio;
      EXPECT_EQ(list[1].num_elements(), k) << ratio;
    }
  }
}

TEST(CompressorTest, EveryShapeComesBack) {
  for (const Kind kind : kKinds) {
    for (const Shape& shape :
         {Shape{}, Shape{0}, Shape{3, 0, 2}, Shape{1}, Shape{256}, Shape{257},
          Shape{2048}, Shape{3, 5, 7}}) {
      Tensor ones = Tensor::Allocate(DType::kF32, shape).value();
      const absl::Span<float> elements = ones.mutable_flat<float>().value();
      std::fill(elements.begin(), elements.end(), 1.0F);
      const auto list = Make(SpecOf(kind), shape)->Compress(ones, 1).value();
      const Tensor back = Decompress(shape, list, TheWorkers()).value();
      EXPECT_EQ(back.shape(), shape);
      if (kind == Kind::kTopK || kind == Kind::kRandomK) continue;
      for (double one : NumbersOf(back)) EXPECT_NEAR(one, 1, 1e-6);
    }
  }
}

// Makes two steps, so that the residual counts.
std::vector<std::string> TwoSteps(const CompressionSpec& spec,
                                  const Tensor& gradient,
                                  const optim::Workers& workers) {
  auto compressor =
      Compressor::Create(spec, "w", gradient.shape(), &workers).value();
  (void)compressor->Compress(gradient, 8).value();
  return BytesOf(compressor->Compress(gradient, 9).value());
}

TEST(CompressorTest, BitsAreTheSameOnEachProcessorWithAnyThreadsAndAddress) {
  std::mt19937_64 random(ChosenSeeds().first());
  const Tensor gradient = VectorOf(NormalFloats(300'001, &random));
  for (const Kind kind : kKinds) {
    const auto expected = TwoSteps(SpecOf(kind), gradient, optim::Workers(1));
    EXPECT_EQ(TwoSteps(SpecOf(kind), Unaligned(gradient), TheWorkers()),
              expected);
    optim::OnEachTarget([&](int64_t target) {
      EXPECT_EQ(TwoSteps(SpecOf(kind), gradient, TheWorkers()), expected)
          << target;
    });
  }
}

TEST(CompressorTest, SeedNameAndStepDecideWhatIsDrawn) {
  std::mt19937_64 random(ChosenSeeds().first());
  const Tensor gradient = VectorOf(NormalFloats(1000, &random));
  for (const Kind kind : {Kind::kRandomK, Kind::kInt8}) {
    CompressionSpec other = SpecOf(kind);
    other.seed = 4;
    const auto bytes = [&](const CompressionSpec& spec, const char* name,
                           uint64_t step) {
      auto made = Compressor::Create(spec, name, {1000}, &TheWorkers()).value();
      return BytesOf(made->Compress(gradient, step).value());
    };
    const auto first = bytes(SpecOf(kind), "w", 1);
    EXPECT_EQ(bytes(SpecOf(kind), "w", 1), first);
    EXPECT_NE(bytes(other, "w", 1), first);
    EXPECT_NE(bytes(SpecOf(kind), "x", 1), first);
    EXPECT_NE(bytes(SpecOf(kind), "w", 2), first);
    EXPECT_NE(bytes(SpecOf(kind), "w", (uint64_t{1} << 32) + 1), first);
  }
}

TEST(CompressorTest, GradientsMayBeOfEachFloatingType) {
  const std::vector<double> wide = {1, -2, 0.5, 4};
  const std::vector<Tensor> gradients = {
      VectorOf(wide), VectorOf<float>({1, -2, 0.5F, 4}),
      VectorOf<tensor::Half>({{0x3C00}, {0xC000}, {0x3800}, {0x4400}}),
      VectorOf<tensor::BFloat16>({{0x3F80}, {0xC000}, {0x3F00}, {0x4080}})};
  for (const Tensor& gradient : gradients) {
    for (const Kind kind : {Kind::kNone, Kind::kHalf, Kind::kTopK}) {
      CompressionSpec spec = SpecOf(kind);
      spec.ratio = 1;
      EXPECT_EQ(RoundTrip(spec, gradient), wide) << gradient.ToString();
    }
    EXPECT_NEAR(RoundTrip(SpecOf(Kind::kInt8), gradient)[3], 4, 1e-6);
  }
}

TEST(CompressorTest, AListStaysAsItWasSent) {
  std::mt19937_64 random(ChosenSeeds().first());
  for (const Kind kind : kKinds) {
    const auto compressor = Make(SpecOf(kind), {5000});
    const auto gradient = [&] { return VectorOf(NormalFloats(5000, &random)); };
    const auto list = compressor->Compress(gradient(), 1).value();
    const auto bytes = BytesOf(list);
    (void)compressor->Compress(gradient(), 2).value();
    ASSERT_TRUE(compressor->GiveBack(list).ok());
    EXPECT_EQ(BytesOf(list), bytes);
  }
}

TEST(CompressorTest, ABadGradientIsRefusedAndChangesNothing) {
  for (const Kind kind :
       {Kind::kHalf, Kind::kTopK, Kind::kRandomK, Kind::kInt8}) {
    const auto compressor = Make(SpecOf(kind), {10});
    std::vector<float> values(10, 1);
    (void)compressor->Compress(VectorOf(values), 1).value();
    const std::vector<float> before(compressor->residual().begin(),
                                    compressor->residual().end());
    for (const float bad : {std::nanf(""), HUGE_VALF, -2e18F}) {
      values[4] = bad;
      EXPECT_NE(MessageOf(compressor->Compress(VectorOf(values), 2).status())
                    .find("compress gradients of w: element 4 is "),
                std::string::npos);
    }
    EXPECT_EQ(MessageOf(compressor->Compress(VectorOf<float>({1}), 2).status()),
              "compress gradients of w: a gradient is f32[10], f64, f16 or "
              "bf16, not f32[1]");
    EXPECT_FALSE(
        compressor->Compress(VectorOf(std::vector<int32_t>(10)), 2).ok());
    EXPECT_EQ(std::vector<float>(compressor->residual().begin(),
                                 compressor->residual().end()),
              before);
  }
}

TEST(CompressorTest, WhatF16CannotHoldIsRefused) {
  const auto compressor = Make(SpecOf(Kind::kHalf, DType::kF16), {3});
  EXPECT_TRUE(compressor->Compress(VectorOf<float>({1, 65519, 0}), 1).ok());
  EXPECT_EQ(
      MessageOf(
          compressor->Compress(VectorOf<float>({1, 65520, 0}), 1).status()),
      "compress gradients of w: rounded to f16, element 1 is inf; f16 ends at "
      "65504: choose bf16, or clip the gradients");
}

TEST(CompressorTest, OnlyItsOwnListsAreGivenBack) {
  const auto compressor = Make(SpecOf(Kind::kTopK, DType::kF32), {3});
  const auto give = [&](const std::vector<Tensor>& list) {
    return compressor->GiveBack(list);
  };
  EXPECT_FALSE(give({}).ok());
  EXPECT_FALSE(give({VectorOf<float>({1, 2, 3})}).ok());
  EXPECT_FALSE(give({VectorOf<int32_t>({3}), VectorOf<float>({1})}).ok());
  EXPECT_FALSE(
      give({VectorOf<int32_t>({1}), VectorOf<float>({std::nanf("")})}).ok());
  EXPECT_EQ(compressor->residual()[1], 0);
  EXPECT_TRUE(give({VectorOf<int32_t>({1}), VectorOf<float>({5})}).ok());
  EXPECT_EQ(compressor->residual()[1], 5);
}

TEST(CompressorTest, AWrongSpecIsRefusedByName) {
  const auto refused = [](const CompressionSpec& spec, Shape shape) {
    return MessageOf(
        Compressor::Create(spec, "w", std::move(shape), &TheWorkers())
            .status());
  };
  EXPECT_EQ(refused(SpecOf(Kind::kHalf, DType::kF32), {1}),
            "compress gradients of w: half precision is f16 or bf16, not f32");
  EXPECT_EQ(refused(SpecOf(Kind::kTopK, DType::kF64), {1}),
            "compress gradients of w: chosen elements are sent as f32, f16 or "
            "bf16, not f64");
  for (const double ratio : {0.0, -1.0, 1.1, std::nan(""), HUGE_VAL}) {
    CompressionSpec spec = SpecOf(Kind::kRandomK);
    spec.ratio = ratio;
    EXPECT_NE(refused(spec, {1}).find("the ratio"), std::string::npos);
  }
  EXPECT_EQ(refused(SpecOf(Kind::kTopK), {int64_t{1} << 31}),
            "compress gradients of w: 2147483648 elements are more than int32 "
            "indices reach; split it");
  EXPECT_NE(refused(SpecOf(Kind::kNone), {-1}).find("compress gradients of w"),
            std::string::npos);
}

}  // namespace
}  // namespace penstock::ps::compression

int main(int argc, char** argv) {
  return penstock::ps::RunWithSeeds(argc, argv, 1);
}
