#include "ps/optim/dense.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "ps/optim/elements.h"
#include "tests/ps/optim/random_values.h"

namespace penstock::ps::optim {
namespace {

using tensor::DType;

using Bytes = std::vector<char>;

// Returns `values` encoded as `dtype`, after `lead` other bytes.
Bytes Encoded(DType dtype, const std::vector<float>& values, size_t lead = 0) {
  const size_t size = tensor::ElementSize(dtype);
  Bytes bytes(lead + values.size() * size, 'x');
  for (size_t i = 0; i < values.size(); ++i) {
    char* const at = bytes.data() + lead + i * size;
    const double wide = values[i];
    if (dtype == DType::kF64) {
      std::memcpy(at, &wide, size);
    } else if (dtype == DType::kF32) {
      std::memcpy(at, &values[i], size);
    } else {
      Narrow(&values[i], dtype, at, 1);
    }
  }
  return bytes;
}

std::shared_ptr<const Optimizer> Make(Rule rule) {
  OptimizerConfig config;
  config.rule = rule;
  config.schedule.learning_rate = 0.1;
  return Optimizer::Create(config).value();
}

// A value with its slots and a second buffer.
class Variable {
 public:
  Variable(std::shared_ptr<const Optimizer> optimizer, DType dtype,
           const std::vector<float>& first)
      : optimizer_(std::move(optimizer)),
        dtype_(dtype),
        count_(first.size()),
        value_(Encoded(dtype, first)),
        updated_(value_.size()) {
    for (const DenseSlot& slot : DenseSlotsOf(*optimizer_, dtype)) {
      slots_.emplace_back(count_ * tensor::ElementSize(slot.dtype));
      slot_data_.push_back(slots_.back().data());
      InitializeSlot(slot, dtype, value_.data(), count_, slot_data_.back());
    }
  }

  // Takes one step into a separate output.
  absl::Status Step(absl::Span<const GradientView> gradients,
                    const Workers& workers) {
    const Scalars scalars = optimizer_->ScalarsOf(++step_);
    absl::Status status = ApplyDense({StepOf(gradients, &scalars)}, workers);
    value_.swap(updated_);
    return status;
  }

  DenseStep StepOf(absl::Span<const GradientView> gradients,
                   const Scalars* scalars) {
    DenseStep step;
    step.optimizer = optimizer_.get();
    step.scalars = scalars;
    step.dtype = dtype_;
    step.count = count_;
    step.gradients = gradients;
    step.value = value_.data();
    step.updated = updated_.data();
    step.slots = slot_data_;
    return step;
  }

  const Bytes& value() const { return value_; }
  const std::vector<Bytes>& slots() const { return slots_; }
  Bytes* updated() { return &updated_; }

 private:
  const std::shared_ptr<const Optimizer> optimizer_;
  const DType dtype_;
  const size_t count_;
  Bytes value_, updated_;
  std::vector<Bytes> slots_;
  std::vector<void*> slot_data_;
  uint64_t step_ = 0;
};

constexpr DType kTypes[] = {DType::kF32, DType::kF64, DType::kF16,
                            DType::kBF16};

float F32At(const Bytes& bytes, size_t i) {
  float value;
  std::memcpy(&value, bytes.data() + i * sizeof(value), sizeof(value));
  return value;
}

TEST(ApplyDenseTest, BitsDoNotDependOnThreadsAddressesOrVectors) {
  std::mt19937_64 random(NewSeed());
  for (DType dtype : kTypes) {
    const size_t count = 150'000 + random() % 50'000;
    const auto first = RandomValues<float>(count, &random);
    std::vector<std::vector<float>> sent;
    for (int worker = 0; worker < 3; ++worker) {
      sent.push_back(RandomValues<float>(count, &random));
    }
    // Trains in memory at several alignments, with gradients that alternate
    // between the wire's types.
    const auto train = [&](size_t lead, const Workers& workers) {
      Variable variable(Make(Rule::kAdam), dtype, first);
      std::vector<Bytes> bytes;
      std::vector<GradientView> views;
      for (size_t i = 0; i < sent.size(); ++i) {
        bytes.push_back(Encoded(kTypes[i], sent[i], lead));
        views.push_back({kTypes[i], bytes.back().data() + lead, count});
      }
      for (int step = 0; step < 3; ++step) {
        EXPECT_TRUE(variable.Step(views, workers).ok());
      }
      return variable;
    };
    const Variable expected = train(0, Workers(1));
    const auto check = [&](const Variable& other) {
      EXPECT_EQ(other.value(), expected.value()) << tensor::Name(dtype);
      EXPECT_EQ(other.slots(), expected.slots()) << tensor::Name(dtype);
    };
    check(train(1, Workers(2)));
    check(train(3, Workers(7)));
    OnEachTarget([&](int64_t) { check(train(0, Workers(2))); });
  }
}

TEST(ApplyDenseTest, TheMeanIsSummedByRankAndDividedOnce) {
  const Workers workers(1);
  // Chooses gradients whose small values would not be lost in any other order
  // of additions.
  const std::vector<float> sent[] = {{1e8F, 9}, {1, 1}, {1, 0}, {-1e8F, 2}};
  std::vector<GradientView> views;
  for (const auto& one : sent) views.push_back({DType::kF32, one.data(), 2});
  OptimizerConfig config;
  config.schedule.learning_rate = 1;
  Variable variable(Optimizer::Create(config).value(), DType::kF32, {0, 0});
  ASSERT_TRUE(variable.Step(views, workers).ok());
  EXPECT_EQ(F32At(variable.value(), 0), 0);
  EXPECT_EQ(F32At(variable.value(), 1), -3);

  const std::vector<float> one = {1};
  const GradientView view = {DType::kF32, one.data(), 1};
  Variable third(Optimizer::Create(config).value(), DType::kF32, {0});
  const float zero = 0;
  const GradientView none = {DType::kF32, &zero, 1};
  ASSERT_TRUE(third.Step({view, none, none}, workers).ok());
  EXPECT_EQ(F32At(third.value(), 0), -1.0F / 3);
}

TEST(ApplyDenseTest, TheMeanIsOfHoweverManyGradients) {
  const Workers workers(1);
  OptimizerConfig config;
  config.schedule.learning_rate = 1;
  const auto sgd = Optimizer::Create(config).value();
  for (DType dtype : kTypes) {
    std::vector<std::vector<float>> sent;
    std::vector<GradientView> views;
    for (float each = 1; each < 10; ++each) {
      sent.push_back({each, -8 * each, 0});
      views.push_back({DType::kF32, sent.back().data(), 3});
      Variable variable(sgd, dtype, {0, 0, 1});
      ASSERT_TRUE(variable.Step(views, workers).ok());
      const float mean = (1 + each) / 2;
      EXPECT_EQ(variable.value(), Encoded(dtype, {-mean, 8 * mean, 1}));
    }
  }
}

TEST(ApplyDenseTest, InPlaceGivesTheSame) {
  std::mt19937_64 random(NewSeed());
  const Workers workers;
  for (size_t count : {0, 1, 2047, 70'000, 3'000'001}) {
    const auto first = RandomValues<float>(count, &random);
    const auto gradient = RandomValues<float>(count, &random);
    const GradientView view = {DType::kF32, gradient.data(), count};
    const auto adam = Make(Rule::kAdam);
    const Scalars scalars = adam->ScalarsOf(1);
    Variable apart(adam, DType::kF32, first),
        in_place(adam, DType::kF32, first);
    DenseStep step = in_place.StepOf({&view, 1}, &scalars);
    Bytes value = in_place.value();
    step.value = step.updated = value.data();
    ASSERT_TRUE(ApplyDense({step}, workers).ok());
    ASSERT_TRUE(apart.Step({view}, workers).ok());
    EXPECT_EQ(value, apart.value()) << count;
    EXPECT_EQ(in_place.slots(), apart.slots()) << count;
  }
}

TEST(ApplyDenseTest, SmallStepsOfNarrowValuesAddUpInTheMaster) {
  const Workers workers(1);
  OptimizerConfig config;
  config.schedule.learning_rate = 1;
  for (DType dtype : {DType::kF16, DType::kBF16}) {
    Variable variable(Optimizer::Create(config).value(), dtype, {1});
    // Chooses a gradient so small that rounding loses it, unless a slot keeps
    // the rest.
    const float gradient = -0x1p-12F;
    for (int step = 0; step < 4096; ++step) {
      ASSERT_TRUE(variable.Step({{DType::kF32, &gradient, 1}}, workers).ok());
    }
    EXPECT_EQ(variable.value(), Encoded(dtype, {2})) << tensor::Name(dtype);
  }
}

// Tests several sizes, the last of which is large enough to bypass the caches.
TEST(ApplyDenseTest, TheOldValueStaysAsItIs) {
  std::mt19937_64 random(NewSeed());
  const Workers workers;
  for (size_t count : {1, 2047, 70'000, 3'000'001}) {
    const auto first = RandomValues<float>(count, &random);
    const auto gradient = RandomValues<float>(count, &random);
    const GradientView view = {DType::kF32, gradient.data(), count};
    Variable variable(Make(Rule::kSgd), DType::kF32, first);
    ASSERT_TRUE(variable.Step({view}, workers).ok());
    EXPECT_EQ(*variable.updated(), Encoded(DType::kF32, first));
    const float rate = static_cast<float>(0.1);
    for (size_t i = 0; i < count; ++i) {
      const float moved = rate * gradient[i];  // rounded before the subtraction
      ASSERT_EQ(F32At(variable.value(), i), first[i] - moved) << i;
    }
  }
}

TEST(ApplyDenseTest, ManyValuesAreSteppedTogether) {
  std::mt19937_64 random(NewSeed());
  std::vector<Variable> together, alone;
  std::vector<std::vector<float>> gradients;
  std::vector<GradientView> views;
  for (size_t i = 0; i < 20; ++i) {
    const size_t count = random() % 5 == 0 ? 0 : random() % 100'000;
    const auto first = RandomValues<float>(count, &random);
    gradients.push_back(RandomValues<float>(count, &random));
    views.push_back({DType::kF32, gradients.back().data(), count});
    const auto optimizer = Make(i % 2 == 0 ? Rule::kAdagrad : Rule::kFtrl);
    together.emplace_back(optimizer, kTypes[i % 4], first);
    alone.emplace_back(optimizer, kTypes[i % 4], first);
  }
  const Scalars scalars[] = {Make(Rule::kAdagrad)->ScalarsOf(1),
                             Make(Rule::kFtrl)->ScalarsOf(1)};
  std::vector<DenseStep> steps;
  for (size_t i = 0; i < together.size(); ++i) {
    steps.push_back(
        together[i].StepOf(absl::MakeConstSpan(&views[i], 1), &scalars[i % 2]));
  }
  ASSERT_TRUE(ApplyDense(steps, Workers(3)).ok());
  for (size_t i = 0; i < together.size(); ++i) {
    ASSERT_TRUE(alone[i].Step({views[i]}, Workers(1)).ok());
    EXPECT_EQ(*together[i].updated(), alone[i].value()) << i;
    EXPECT_EQ(together[i].slots(), alone[i].slots()) << i;
  }
}

TEST(ApplyDenseTest, WhatIsWrongIsToldBeforeAnythingChanges) {
  const Workers workers(1);
  const auto adam = Make(Rule::kAdam);
  const Scalars scalars = adam->ScalarsOf(1);
  const std::vector<float> ones = {1, 1};
  const std::vector<GradientView> good = {{DType::kF32, ones.data(), 2}};
  const auto message = [&](auto change) {
    Variable first(adam, DType::kF32, {1, 2}),
        second(adam, DType::kF32, {3, 4});
    DenseStep wrong = second.StepOf(good, &scalars);
    change(&wrong);
    const absl::Status status =
        ApplyDense({first.StepOf(good, &scalars), wrong}, workers);
    if (!status.ok()) {
      EXPECT_EQ(first.slots()[0], Bytes(8));
      EXPECT_EQ(*first.updated(), Bytes(8));
    }
    return std::string(status.message());
  };
  EXPECT_EQ(message([](DenseStep*) {}), "");
  EXPECT_EQ(message([](DenseStep* step) { step->gradients = {}; }),
            "step 1: there is no gradient");
  EXPECT_EQ(message([](DenseStep* step) { step->count = 1; }),
            "step 1: a gradient has 2 elements, the value 1");
  EXPECT_EQ(message([](DenseStep* step) { step->dtype = DType::kInt8; }),
            "step 1: f32, f64, f16 and bf16 can be trained, not int8");
  EXPECT_EQ(message([](DenseStep* step) { step->dtype = DType::kF16; }),
            "step 1: there are 2 slots, to be 3");
  EXPECT_EQ(message([](DenseStep* step) { step->slots = {}; }),
            "step 1: there are 0 slots, to be 2");
  std::vector<void*> three(3);
  EXPECT_EQ(message([&](DenseStep* step) { step->slots = three; }),
            "step 1: there are 3 slots, to be 2");
}

TEST(DenseSlotsTest, NarrowValuesHaveAMasterAndWideOnesWideSlots) {
  const auto adam = Make(Rule::kAdam);
  EXPECT_EQ(DenseSlotsOf(*adam, DType::kF32).size(), 2U);
  EXPECT_EQ(DenseSlotsOf(*adam, DType::kF64)[1].dtype, DType::kF64);
  const auto narrow = DenseSlotsOf(*adam, DType::kBF16);
  ASSERT_EQ(narrow.size(), 3U);
  EXPECT_EQ(narrow[0].name, "m");
  EXPECT_EQ(narrow[0].dtype, DType::kF32);
  EXPECT_EQ(narrow[2].name, kMaster);
  EXPECT_TRUE(DenseSlotsOf(*adam, DType::kBool).empty());
}

TEST(DenseSlotsTest, TheyBeginAsTheRuleSays) {
  OptimizerConfig config;
  config.rule = Rule::kAdagrad;
  config.initial_accumulator = 0.5;
  const auto adagrad = Optimizer::Create(config).value();
  const Variable narrow(adagrad, DType::kF16, std::vector<float>(5000, 2));
  EXPECT_EQ(narrow.slots()[0],
            Encoded(DType::kF32, std::vector<float>(5000, 0.5)));
  EXPECT_EQ(narrow.slots()[1],
            Encoded(DType::kF32, std::vector<float>(5000, 2)));
  const Variable wide(adagrad, DType::kF64, {2});
  EXPECT_EQ(wide.slots()[0], Encoded(DType::kF64, {0.5}));
}

}  // namespace
}  // namespace penstock::ps::optim
