// Tests parts of variables against a plain loop over doubles.

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "ps/dense/dense_part.h"
#include "tests/ps/dense/parts.h"
#include "tests/ps/seeds.h"

namespace penstock::ps {
namespace {

using optim::Rule;
using tensor::Tensor;

// A random run of one rule: steps, readers, snapshots, restores. A simple loop
// computes `expected`, with the momentum in doubles.
class RandomRun {
 public:
  explicit RandomRun(uint64_t seed)
      : random_(seed), size_(1 + random_() % 5000) {
    std::vector<float> first(size_);
    for (float& element : first) element = Element();
    part_ = NewPart(Rule::kMomentum, F32(first));
    expected_.assign(first.begin(), first.end());
    velocity_.assign(size_, 0);
  }

  void Go() {
    for (int i = 0; i < 40; ++i) {
      switch (random_() % 4) {
        case 0:
        case 1:
          TakeStep();
          break;
        case 2:
          kept_.push_back({part_->TakeSnapshot(), expected_, velocity_});
          break;
        default:
          GoBack();
      }
      ExpectIs(part_->Current().value, expected_);
      for (const Kept& kept : kept_) {
        ExpectIs(kept.snapshot.value, kept.value);
        ExpectIs(kept.snapshot.slots[0].tensor, kept.velocity);
      }
      if (::testing::Test::HasFatalFailure()) return;
    }
  }

 private:
  struct Kept {
    DensePart::Snapshot snapshot;
    std::vector<double> value;
    std::vector<double> velocity;
  };

  float Element() {
    return static_cast<float>(random_() % 2001) / 1000.0f - 1.0f;
  }

  void TakeStep() {
    const size_t workers = 1 + random_() % 3;
    std::vector<Tensor> gradients;
    std::vector<double> mean(size_, 0);
    for (size_t w = 0; w < workers; ++w) {
      std::vector<float> gradient(size_);
      for (size_t i = 0; i < size_; ++i) {
        gradient[i] = Element();
        mean[i] += gradient[i] / static_cast<double>(workers);
      }
      gradients.push_back(F32(gradient));
    }
    const absl::Status status = Step(part_.get(), std::move(gradients));
    ASSERT_TRUE(status.ok()) << status;
    for (size_t i = 0; i < size_; ++i) {
      velocity_[i] = 0.5 * velocity_[i] + mean[i];
      expected_[i] -= 0.25 * velocity_[i];
    }
  }

  // Returns to the last snapshot. The part then shares the snapshot's memory.
  void GoBack() {
    if (kept_.empty()) return;
    const Kept& last = kept_.back();
    auto part = DensePart::Restore(OptionsOf(Rule::kMomentum), last.snapshot);
    ASSERT_TRUE(part.ok()) << part.status();
    part_ = *std::move(part);
    expected_ = last.value;
    velocity_ = last.velocity;
    if (random_() % 2 == 0) kept_.pop_back();
  }

  void ExpectIs(const Tensor& tensor, const std::vector<double>& expected) {
    const absl::Span<const float> elements = *tensor.flat<float>();
    for (size_t i = 0; i < size_; ++i) {
      // Allows for some forty roundings of numbers below 40.
      ASSERT_NEAR(elements[i], expected[i], 1e-4) << "element " << i;
    }
  }

  std::mt19937 random_;
  const size_t size_;
  std::unique_ptr<DensePart> part_;
  std::vector<double> expected_;
  std::vector<double> velocity_;
  std::vector<Kept> kept_;
};

TEST(DensePartRandomTest, StepsSnapshotsAndRestores) {
  RunEachSeed([](uint64_t seed) { RandomRun(seed).Go(); });
}

}  // namespace
}  // namespace penstock::ps

int main(int argc, char** argv) {
  return penstock::ps::RunWithSeeds(argc, argv, /*count=*/100);
}
