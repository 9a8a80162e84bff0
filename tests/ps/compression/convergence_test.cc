// Tests that gradient descent on least squares converges with each kind of
// compression.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "ps/compression/compressor.h"
#include "ps/compression/decompress.h"
#include "ps/optim/workers.h"
#include "tests/ps/compression/tensors.h"
#include "tests/ps/seeds.h"

namespace penstock::ps::compression {
namespace {

using Kind = CompressionSpec::Kind;
using tensor::DType;

constexpr size_t kUnknowns = 50;
constexpr size_t kRows = 100;  // rows per worker
constexpr size_t kWorkers = 4;

// A least-squares problem: some rows of A x = b, which has a solution.
struct Problem {
  Problem(const std::vector<float>& solution, std::mt19937_64* random)
      : a(NormalFloats(kRows * kUnknowns, random)), b(kRows) {
    for (size_t row = 0; row < kRows; ++row) b[row] = Times(row, solution);
  }

  float Times(size_t row, const std::vector<float>& x) const {
    float sum = 0;
    for (size_t i = 0; i < kUnknowns; ++i) sum += a[row * kUnknowns + i] * x[i];
    return sum;
  }

  // Returns the gradient at x: A'(A x - b) / rows.
  std::vector<float> Gradient(const std::vector<float>& x) const {
    std::vector<float> gradient(kUnknowns);
    for (size_t row = 0; row < kRows; ++row) {
      const float error = (Times(row, x) - b[row]) / kRows;
      for (size_t i = 0; i < kUnknowns; ++i) {
        gradient[i] += error * a[row * kUnknowns + i];
      }
    }
    return gradient;
  }

  std::vector<float> a, b;
};

// Trains for some steps. Returns the final distance from the solution, relative
// to the initial distance.
double Train(const CompressionSpec& spec, uint64_t seed) {
  constexpr float kRate = 0.05F;
  const optim::Workers threads(1);
  std::mt19937_64 random(seed);
  const std::vector<float> solution = NormalFloats(kUnknowns, &random);
  std::vector<Problem> problems;
  std::vector<std::unique_ptr<Compressor>> compressors;
  for (size_t worker = 0; worker < kWorkers; ++worker) {
    problems.emplace_back(solution, &random);
    CompressionSpec own = spec;
    own.seed = seed * kWorkers + worker;
    compressors.push_back(
        Compressor::Create(own, "x", {kUnknowns}, &threads).value());
  }
  std::vector<float> x(kUnknowns);
  for (uint64_t step = 1; step <= 1000; ++step) {
    std::vector<float> mean(kUnknowns);
    for (size_t worker = 0; worker < kWorkers; ++worker) {
      const auto list =
          compressors[worker]
              ->Compress(VectorOf(problems[worker].Gradient(x)), step)
              .value();
      const auto arrived =
          NumbersOf(Decompress({kUnknowns}, list, threads).value());
      for (size_t i = 0; i < kUnknowns; ++i) {
        mean[i] += static_cast<float>(arrived[i]) / kWorkers;
      }
    }
    for (size_t i = 0; i < kUnknowns; ++i) x[i] -= kRate * mean[i];
  }
  double left = 0, first = 0;
  for (size_t i = 0; i < kUnknowns; ++i) {
    left += std::pow(x[i] - solution[i], 2);
    first += std::pow(solution[i], 2);
  }
  return std::sqrt(left / first);
}

// Tests that each kind converges. The eigenvalues of A'A / rows are between
// 0.42 and 1.83, and the rate is 0.05. Each step therefore removes at least 2%
// of the error, and 1000 steps reduce the error to the precision of f32. A
// compressor that sends a tenth of the elements without error feedback would
// leave e^-2 of the error.
TEST(ConvergenceTest, EachKindConvergesAsNoneDoes) {
  struct Case {
    Kind kind;
    DType dtype;
  };
  Seeds& seeds = ChosenSeeds();
  for (uint64_t seed = seeds.first(); seeds.Wants(seed); ++seed) {
    for (const Case& one :
         {Case{Kind::kNone, DType::kF32}, Case{Kind::kHalf, DType::kBF16},
          Case{Kind::kHalf, DType::kF16}, Case{Kind::kTopK, DType::kF32},
          Case{Kind::kTopK, DType::kBF16}, Case{Kind::kTopK, DType::kF16},
          Case{Kind::kRandomK, DType::kF32}, Case{Kind::kRandomK, DType::kBF16},
          Case{Kind::kInt8, DType::kF32}}) {
      CompressionSpec spec;
      spec.kind = one.kind;
      spec.dtype = one.dtype;
      spec.ratio = 0.1;
      EXPECT_LT(Train(spec, seed), 1e-5)
          << static_cast<int>(one.kind) << " " << tensor::Name(one.dtype)
          << ", " << RepeatWith(seed);
    }
  }
  seeds.Print();
}

}  // namespace
}  // namespace penstock::ps::compression

int main(int argc, char** argv) {
  return penstock::ps::RunWithSeeds(argc, argv, 3);
}
