// Tests parts of variables: compares their steps with the optimizer's kernel,
// and tests refusals.

#include "ps/dense/dense_part.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "tests/ps/dense/parts.h"

namespace penstock::ps {
namespace {

using optim::Rule;
using tensor::DType;
using tensor::Tensor;
using ::testing::HasSubstr;

TEST(DensePartTest, AStepTakesTheMeanOfTheGradients) {
  const auto part = NewPart(Rule::kSgd, F32({1, 2, 3}));
  ASSERT_TRUE(Step(part.get(), {F32({4, 0, -4}), F32({0, 8, -4})}).ok());
  EXPECT_EQ(Elements(part->Current().value),
            (std::vector<float>{0.5, 1, 4}));  // minus 0.25 * (2, 4, -4)
  EXPECT_EQ(part->steps(), 1u);
}

// An element that is trained alone with Adam, by the optimizer's kernel.
class Alone {
 public:
  explicit Alone(const optim::Optimizer& optimizer) : optimizer_(optimizer) {}
  void TakeStep(float gradient) {
    float* const slots[] = {&first_moment_, &second_moment_};
    optimizer_.Apply(optimizer_.ScalarsOf(++steps_), &gradient, &value_,
                     &value_, slots, 1);
  }
  float value() const { return value_; }

 private:
  const optim::Optimizer& optimizer_;
  float value_ = 1, first_moment_ = 0, second_moment_ = 0;
  uint64_t steps_ = 0;
};

TEST(DensePartTest, EachPartGoesByItsOwnSteps) {
  DensePart::Options options = OptionsOf(Rule::kAdam);
  Alone expected[] = {Alone(*options.optimizer), Alone(*options.optimizer)};
  std::vector<DensePart::Step> together;
  std::vector<std::unique_ptr<DensePart>> parts;
  for (int i = 0; i < 2; ++i) {
    parts.push_back(*DensePart::Create(options, F32({1})));
    together.push_back({parts[i].get(), {F32({0.5})}});
  }
  for (int i = 0; i < 3; ++i) {
    expected[1].TakeStep(-2);
    ASSERT_TRUE(Step(parts[1].get(), {F32({-2})}).ok());
  }
  ASSERT_TRUE(DensePart::Apply(together, Threads()).ok());
  for (int i = 0; i < 2; ++i) {
    expected[i].TakeStep(0.5);
    EXPECT_EQ(Elements(parts[i]->Current().value)[0], expected[i].value());
  }
}

TEST(DensePartTest, ReadersKeepTheVersionThatTheyHave) {
  const auto part = NewPart(Rule::kMomentum, F32({1, 2, 3}));
  const VersionedTensor::Version before = part->Current();
  ASSERT_TRUE(Step(part.get(), {F32({1, 1, 1})}).ok());
  EXPECT_EQ(Elements(before.value), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(part->Current().number, before.number + 1);
}

// Tests readers of many parts. With many parts, publishing the step takes so
// long that a reader can come in between.
TEST(DensePartTest, ReadersThatLockSeeTheStepsOfAllPartsOrOfNone) {
  constexpr uint64_t kSteps = 1000;
  absl::Mutex readers;
  std::vector<std::unique_ptr<DensePart>> parts;
  std::vector<DensePart::Step> steps;
  for (int i = 0; i < 100; ++i) {
    parts.push_back(NewPart(Rule::kSgd, F32({1})));
    steps.push_back({parts.back().get(), {F32({1})}});
  }
  std::atomic<bool> done{false};
  std::atomic<int> torn{0};
  std::thread reader([&] {
    while (!done) {
      absl::MutexLock lock(&readers);
      const uint64_t last = parts.back()->Current().number;
      if (parts.front()->Current().number != last) ++torn;
    }
  });
  for (uint64_t i = 0; i < kSteps; ++i) {
    const absl::Status status = DensePart::Apply(steps, Threads(), &readers);
    EXPECT_TRUE(status.ok()) << status;
  }
  done = true;
  reader.join();
  EXPECT_EQ(torn, 0);
  EXPECT_EQ(parts.back()->Current().number, kSteps);
}

TEST(DensePartTest, RefusesWhatCannotBeTrained) {
  const auto code = [](const Tensor& value) {
    const auto part = DensePart::Create(OptionsOf(Rule::kSgd), value);
    EXPECT_THAT(std::string(part.status().message()),
                HasSubstr("layer/kernel[0:3]"));
    return part.status().code();
  };
  EXPECT_EQ(code(*Tensor::Of<int32_t>({1}, {1})),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(F32({1, std::numeric_limits<float>::quiet_NaN()})),
            absl::StatusCode::kInvalidArgument);
}

// Tests values that are as large as a refused gradient. A diverging training
// may have such values, and its checkpoint must be readable.
TEST(DensePartTest, ValuesMayBeLargerThanGradients) {
  constexpr float kLarge = 1e30f;
  for (const Rule rule : {Rule::kSgd, Rule::kMomentum}) {
    const auto part = DensePart::Create(OptionsOf(rule), F32({kLarge, -1}));
    ASSERT_TRUE(part.ok()) << part.status();
    const auto again =
        DensePart::Restore(OptionsOf(rule), (*part)->TakeSnapshot());
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(Elements((*again)->Current().value)[0], kLarge);
  }
  EXPECT_FALSE(DensePart::Create(OptionsOf(Rule::kSgd),
                                 F32({std::numeric_limits<float>::infinity()}))
                   .ok());
  // Test infinity in f16, and in bf16.
  for (const auto& [dtype, bits] :
       {std::pair(DType::kF16, 0x7c00), std::pair(DType::kBF16, 0x7f80)}) {
    Tensor value = *Tensor::Allocate(dtype, {1});
    const auto element = static_cast<uint16_t>(bits);
    std::memcpy(value.buffer()->mutable_data(), &element, sizeof(element));
    EXPECT_FALSE(DensePart::Create(OptionsOf(Rule::kSgd), value).ok());
  }
}

TEST(DensePartTest, RefusesGradientsThatDoNotFit) {
  const auto part = NewPart(Rule::kSgd, F32({1, 2, 3}));
  const auto message = [&part](const Tensor& gradient) {
    const absl::Status status = part->Check(gradient);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_THAT(message(F32({1, 2})), HasSubstr("f32[2], it is f32[3]"));
  EXPECT_THAT(message(*Tensor::Of<float>({3, 1}, {1, 2, 3})),
              HasSubstr("f32[3,1]"));
  EXPECT_THAT(message(*Tensor::Of<int32_t>({3}, {1, 2, 3})),
              HasSubstr("layer/kernel[0:3]"));
  EXPECT_THAT(message(F32({1, 2, std::numeric_limits<float>::infinity()})),
              HasSubstr("2"));
  EXPECT_TRUE(part->Check(*Tensor::Of<double>({3}, {1, 2, 3})).ok());
}

TEST(DensePartTest, RefusesWhatLiesOnADevice) {
  const Tensor there = *Tensor::FromBuffer(
      DType::kF32, {2},
      tensor::Buffer::WrapDevice({tensor::Device::Kind::kCuda, 0}, 64, 8,
                                 /*writable=*/true, nullptr));
  EXPECT_TRUE(absl::IsFailedPrecondition(
      DensePart::Create(OptionsOf(Rule::kSgd), there).status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(
      NewPart(Rule::kSgd, F32({1, 2}))->Check(there)));
}

TEST(DensePartTest, APartWithoutElementsTakesSteps) {
  const auto part = NewPart(Rule::kMomentum, F32({}));
  ASSERT_TRUE(Step(part.get(), {F32({})}).ok());
  EXPECT_EQ(part->steps(), 1u);
  // Takes a snapshot of a tensor without elements, which may have no buffer.
  DensePart::Snapshot empty = part->TakeSnapshot();
  empty.value = Tensor();
  empty.slots[0].tensor = Tensor();
  const auto again =
      *DensePart::Restore(OptionsOf(Rule::kMomentum), std::move(empty));
  ASSERT_TRUE(Step(again.get(), {Tensor()}).ok());
  EXPECT_EQ(again->steps(), 2u);
}

// An allocator that allows a given number of allocations, and then fails.
class Budget final : public tensor::Allocator {
 public:
  explicit Budget(int left) : left_(left) {}
  absl::StatusOr<std::shared_ptr<tensor::Buffer>> Allocate(
      size_t bytes) override {
    if (left_-- <= 0) return absl::ResourceExhaustedError("no memory");
    return tensor::HeapAllocator()->Allocate(bytes);
  }

 private:
  int left_;
};

TEST(DensePartTest, WithoutMemoryNoPartTakesItsStep) {
  Budget none(0);
  DensePart::Options options = OptionsOf(Rule::kMomentum);
  options.allocator = &none;
  const auto poor = *DensePart::Create(options, F32({1, 2, 3}));
  const auto rich = NewPart(Rule::kMomentum, F32({1, 2, 3}));
  const absl::Status status = DensePart::Apply(
      {{rich.get(), {F32({1, 1, 1})}}, {poor.get(), {F32({1, 1, 1})}}},
      Threads());
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("layer/kernel[0:3]"));
  for (const auto* part : {rich.get(), poor.get()}) {
    EXPECT_EQ(part->steps(), 0u);
    EXPECT_EQ(Elements(part->Current().value), (std::vector<float>{1, 2, 3}));
    EXPECT_EQ(Elements(part->TakeSnapshot().slots[0].tensor),
              (std::vector<float>{0, 0, 0}));
  }
}

TEST(DensePartTest, CountsWhatItHolds) {
  const auto part = NewPart(Rule::kAdam, F32({1, 2, 3}));
  EXPECT_EQ(part->held_bytes(), 3 * 12u);  // the value and two slots
  const auto held = part->Current();
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(Step(part.get(), {F32({1, 1, 1})}).ok());
  }
  EXPECT_LE(part->held_bytes(), 6 * 12u);  // 4 tensors are held, plus up to 2
  EXPECT_GE(part->held_bytes(), 4 * 12u);
  const auto again =
      *DensePart::Restore(OptionsOf(Rule::kAdam), part->TakeSnapshot());
  EXPECT_EQ(again->held_bytes(), 3 * 12u);
}

// Tests for each rule and type that a restored training continues bit for bit.
class RestoreTest : public ::testing::TestWithParam<std::tuple<Rule, DType>> {};

Tensor Random(std::mt19937* random, DType dtype, int64_t count) {
  Tensor tensor = *Tensor::Allocate(dtype, {count});
  auto* const bytes = tensor.buffer()->mutable_data();
  for (int64_t i = 0; i < count; ++i) {
    const double element = static_cast<double>((*random)() % 1000) / 1000;
    if (dtype == DType::kF64) {
      reinterpret_cast<double*>(bytes)[i] = element;
    } else if (dtype == DType::kF32) {
      reinterpret_cast<float*>(bytes)[i] = static_cast<float>(element);
    } else {
      // Writes numbers that are positive and below 1 in both 16-bit types.
      reinterpret_cast<uint16_t*>(bytes)[i] =
          static_cast<uint16_t>(0x2c00 + (*random)() % 0x0800);
    }
  }
  return tensor;
}

TEST_P(RestoreTest, GoesOnBitForBit) {
  const auto [rule, dtype] = GetParam();
  std::mt19937 random(1);
  auto created =
      DensePart::Create(OptionsOf(rule), Random(&random, dtype, 777));
  ASSERT_TRUE(created.ok()) << created.status();
  const std::unique_ptr<DensePart> part = *std::move(created);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(Step(part.get(), {Random(&random, dtype, 777)}).ok());
  }
  auto restored = DensePart::Restore(OptionsOf(rule), part->TakeSnapshot());
  ASSERT_TRUE(restored.ok()) << restored.status();
  for (int i = 0; i < 3; ++i) {
    const Tensor gradient = Random(&random, dtype, 777);
    ASSERT_TRUE(Step(part.get(), {gradient}).ok());
    ASSERT_TRUE(Step(restored->get(), {gradient}).ok());
  }
  EXPECT_EQ(part->steps(), (*restored)->steps());
  EXPECT_EQ(part->Current().value.bytes(),
            (*restored)->Current().value.bytes());
}

INSTANTIATE_TEST_SUITE_P(
    Rules, RestoreTest,
    ::testing::Combine(::testing::Values(Rule::kSgd, Rule::kMomentum,
                                         Rule::kNesterov, Rule::kAdagrad,
                                         Rule::kRmsProp, Rule::kAdam,
                                         Rule::kAdamW, Rule::kFtrl),
                       ::testing::Values(DType::kF32, DType::kF64, DType::kF16,
                                         DType::kBF16)));

TEST(DensePartTest, RefusesSlotsOfAnotherOptimizer) {
  const auto part = NewPart(Rule::kMomentum, F32({1, 2, 3}));
  const auto restore = [&](Rule rule, DensePart::Snapshot snapshot) {
    return std::string(DensePart::Restore(OptionsOf(rule), std::move(snapshot))
                           .status()
                           .message());
  };
  EXPECT_THAT(restore(Rule::kAdam, part->TakeSnapshot()), HasSubstr("slots"));
  EXPECT_THAT(restore(Rule::kAdagrad, part->TakeSnapshot()),
              HasSubstr("its optimizer keeps"));
  DensePart::Snapshot damaged = part->TakeSnapshot();
  damaged.slots[0].tensor = F32({0, std::nanf(""), 0});
  EXPECT_THAT(restore(Rule::kMomentum, std::move(damaged)),
              HasSubstr("element 1 is not finite"));
  DensePart::Snapshot cut = part->TakeSnapshot();
  cut.slots[0].tensor = F32({0, 0});
  EXPECT_THAT(restore(Rule::kMomentum, std::move(cut)), HasSubstr("f32[2]"));
}

}  // namespace
}  // namespace penstock::ps
