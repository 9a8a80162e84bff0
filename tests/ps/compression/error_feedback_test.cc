// Tests that error feedback loses nothing: sent and kept parts add up to the
// gradients.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "ps/compression/compressor.h"
#include "ps/compression/decompress.h"
#include "ps/optim/workers.h"
#include "tests/ps/compression/tensors.h"
#include "tests/ps/optim/random_values.h"
#include "tests/ps/seeds.h"

namespace penstock::ps::compression {
namespace {

using Kind = CompressionSpec::Kind;
using tensor::DType;
using tensor::Tensor;

const optim::Workers& TheWorkers() {
  static const auto* const kWorkers = new optim::Workers(2);
  return *kWorkers;
}

std::unique_ptr<Compressor> Make(Kind kind, DType dtype, double ratio,
                                 size_t count) {
  CompressionSpec spec;
  spec.kind = kind;
  spec.dtype = dtype;
  spec.ratio = ratio;
  spec.seed = 5;
  return Compressor::Create(spec, "v", {static_cast<int64_t>(count)},
                            &TheWorkers())
      .value();
}

std::vector<float> ResidualOf(const Compressor& compressor) {
  return {compressor.residual().begin(), compressor.residual().end()};
}

std::vector<double> Arrived(const std::vector<Tensor>& list, size_t count) {
  return NumbersOf(
      Decompress({static_cast<int64_t>(count)}, list, TheWorkers()).value());
}

// A compressor and its steps, of a random size, type and ratio.
class Program {
 public:
  explicit Program(uint64_t seed)
      : random_(seed),
        count_(1 + random_() % 5000),
        total_(count_),
        given_(count_) {
    const DType dtypes[] = {DType::kF32, DType::kF16, DType::kBF16};
    const double ratios[] = {1e-9, 0.01, 0.3, 0.7, 1};
    compressor_ = Make(random_() % 2 == 0 ? Kind::kTopK : Kind::kRandomK,
                       dtypes[random_() % 3], ratios[random_() % 5], count_);
  }

  // Checks one step of the compressor. The sent part plus the residual must
  // equal the old residual plus the gradient exactly, in f32.
  void Step(uint64_t step) {
    const std::vector<float> before = ResidualOf(*compressor_);
    const std::vector<float> gradient = NormalFloats(count_, &random_);
    const std::vector<Tensor> list =
        compressor_->Compress(VectorOf(gradient), step).value();
    const std::vector<double> arrived = Arrived(list, count_);
    const std::vector<float> after = ResidualOf(*compressor_);
    for (size_t i = 0; i < count_; ++i) {
      const float sum = before[i] + gradient[i];
      ASSERT_EQ(arrived[i] + after[i], sum) << i;
    }
    if (random_() % 3 == 0) {
      GiveBack(before, gradient, list);
    } else {
      for (size_t i = 0; i < count_; ++i) total_[i] += arrived[i];
    }
    for (size_t i = 0; i < count_; ++i) given_[i] += gradient[i];
  }

  // Checks that everything sent plus the residual equals the sum of all
  // gradients, except for the rounding of each addition.
  void CheckTotal(int steps) {
    const std::vector<float> left = ResidualOf(*compressor_);
    for (size_t i = 0; i < count_; ++i) {
      ASSERT_NEAR(total_[i] + left[i], given_[i], steps * 30 * 6e-8) << i;
    }
  }

 private:
  void GiveBack(const std::vector<float>& before,
                const std::vector<float>& gradient,
                const std::vector<Tensor>& list) {
    ASSERT_TRUE(
        compressor_->GiveBack({Unaligned(list[0]), Unaligned(list[1])}).ok());
    const std::vector<float> after = ResidualOf(*compressor_);
    for (size_t i = 0; i < count_; ++i) {
      ASSERT_EQ(after[i], before[i] + gradient[i]) << i;
    }
  }

  std::mt19937_64 random_;
  const size_t count_;
  std::unique_ptr<Compressor> compressor_;
  std::vector<double> total_, given_;
};

TEST(ErrorFeedbackTest, WhatIsSentAndWhatIsKeptIsWhatCame) {
  constexpr int kSteps = 12;
  RunEachSeed([](uint64_t seed) {
    Program program(seed);
    for (int step = 0; step < kSteps; ++step) {
      program.Step(static_cast<uint64_t>(step));
      ASSERT_FALSE(HasFailure());
    }
    program.CheckTotal(kSteps);
  });
}

// Tests whole numbers, which have exact sums. After n / k steps without a
// gradient, top-k has sent all of them.
TEST(ErrorFeedbackTest, WholeNumbersArriveExactly) {
  constexpr size_t kCount = 1000;
  const auto compressor = Make(Kind::kTopK, DType::kF32, 0.1, kCount);
  std::mt19937_64 random(ChosenSeeds().first());
  std::vector<double> given(kCount), arrived(kCount);
  for (uint64_t step = 0; step < 30; ++step) {
    std::vector<float> gradient(kCount);
    if (step < 20) {
      for (float& element : gradient) {
        element = static_cast<float>(random() % 2001) - 1000;
      }
    }
    const auto list = compressor->Compress(VectorOf(gradient), step).value();
    const std::vector<double> now = Arrived(list, kCount);
    for (size_t i = 0; i < kCount; ++i) {
      given[i] += gradient[i];
      arrived[i] += now[i];
    }
  }
  EXPECT_EQ(arrived, given);
  EXPECT_EQ(ResidualOf(*compressor), std::vector<float>(kCount));
}

TEST(ErrorFeedbackTest, WhatIsTooLargeForTheTypeComesLater) {
  const auto halves = Make(Kind::kTopK, DType::kF16, 1, 2);
  auto list = halves->Compress(VectorOf<float>({1e5F, -7e4F}), 0).value();
  EXPECT_EQ(Arrived(list, 2), (std::vector<double>{65504, -65504}));
  list = halves->Compress(VectorOf<float>({0, 0}), 1).value();
  EXPECT_EQ(Arrived(list, 2), (std::vector<double>{34496, -4496}));

  // Makes steps whose sum exceeds a server's limit.
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    const auto one = Make(Kind::kTopK, dtype, 0.5, 2);
    for (uint64_t step = 0; step < 3; ++step) {
      list = one->Compress(VectorOf<float>({9e17F, 9e17F}), step).value();
      EXPECT_LE(NumbersOf(list[1])[0], 1e18);
    }
    EXPECT_GT(one->residual()[1], 8e17F);
  }
}

}  // namespace
}  // namespace penstock::ps::compression

int main(int argc, char** argv) {
  return penstock::ps::RunWithSeeds(argc, argv, 100);
}
