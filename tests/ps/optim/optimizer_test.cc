#include "ps/optim/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "tests/ps/optim/random_values.h"

namespace penstock::ps::optim {
namespace {

constexpr Rule kAll[] = {Rule::kSgd,     Rule::kMomentum, Rule::kNesterov,
                         Rule::kAdagrad, Rule::kRmsProp,  Rule::kAdam,
                         Rule::kAdamW,   Rule::kFtrl};

// Returns a config with every option switched on.
OptimizerConfig FullConfig(Rule rule) {
  OptimizerConfig config;
  config.rule = rule;
  config.schedule.learning_rate = 0.1;
  config.weight_decay = 0.01;
  config.clip_value = 5;
  config.lambda1 = 0.1;
  config.lambda2 = 0.2;
  config.initial_accumulator = 0.1;
  return config;
}

// A value with its slots.
template <typename T>
struct State {
  State(const Optimizer& optimizer, const std::vector<T>& first)
      : value(first) {
    for (const Slot& slot : optimizer.slots()) {
      slots.emplace_back(first.size(), static_cast<T>(slot.initial));
    }
  }

  // Applies elements [begin, end), in place.
  void Apply(const Optimizer& optimizer, uint64_t step,
             const std::vector<T>& gradient, size_t begin, size_t end) {
    T* at[kMostSlots] = {};
    for (size_t k = 0; k < slots.size(); ++k) at[k] = slots[k].data() + begin;
    optimizer.Apply(optimizer.ScalarsOf(step), gradient.data() + begin,
                    value.data() + begin, value.data() + begin, at,
                    end - begin);
  }

  bool operator==(const State& other) const {
    bool same = SameBits(value, other.value);
    for (size_t k = 0; k < slots.size(); ++k) {
      same = same && SameBits(slots[k], other.slots[k]);
    }
    return same;
  }

  std::vector<T> value;
  std::vector<std::vector<T>> slots;
};

template <typename T>
class OptimizerOfTest : public testing::Test {};
using Precisions = testing::Types<float, double>;
TYPED_TEST_SUITE(OptimizerOfTest, Precisions);

TYPED_TEST(OptimizerOfTest, BitsDependNeitherOnTheProcessorNorOnTheDivision) {
  std::mt19937_64 random(NewSeed());
  for (Rule rule : kAll) {
    const size_t count = 1 + random() % 200;
    const auto first = RandomValues<TypeParam>(count, &random);
    const auto best = Optimizer::Create(FullConfig(rule)).value();
    State<TypeParam> expected(*best, first);
    std::vector<std::vector<TypeParam>> gradients;
    for (uint64_t step = 1; step <= 5; ++step) {
      gradients.push_back(RandomValues<TypeParam>(count, &random));
      expected.Apply(*best, step, gradients.back(), 0, count);
    }
    OnEachTarget([&](int64_t target) {
      const auto optimizer = Optimizer::Create(FullConfig(rule)).value();
      State<TypeParam> state(*optimizer, first);
      for (uint64_t step = 1; step <= 5; ++step) {
        for (size_t begin = 0; begin < count;) {
          const size_t end = std::min(count, begin + 1 + random() % 40);
          state.Apply(*optimizer, step, gradients[step - 1], begin, end);
          begin = end;
        }
      }
      EXPECT_TRUE(state == expected) << Name(rule) << " on target " << target;
    });
  }
}

TYPED_TEST(OptimizerOfTest, OutOfPlaceGivesTheSameAndReadsOnly) {
  std::mt19937_64 random(NewSeed());
  for (Rule rule : kAll) {
    const auto optimizer = Optimizer::Create(FullConfig(rule)).value();
    const auto first = RandomValues<TypeParam>(77, &random);
    const auto gradient = RandomValues<TypeParam>(77, &random);
    State<TypeParam> in_place(*optimizer, first), apart(*optimizer, first);
    in_place.Apply(*optimizer, 3, gradient, 0, 77);
    std::vector<TypeParam> updated(77);
    TypeParam* slots[kMostSlots] = {};
    for (size_t k = 0; k < apart.slots.size(); ++k) {
      slots[k] = apart.slots[k].data();
    }
    optimizer->Apply(optimizer->ScalarsOf(3), gradient.data(),
                     apart.value.data(), updated.data(), slots, 77);
    EXPECT_TRUE(SameBits(updated, in_place.value)) << Name(rule);
    EXPECT_TRUE(SameBits(apart.value, first)) << Name(rule);
    EXPECT_EQ(apart.slots, in_place.slots) << Name(rule);
  }
}

TYPED_TEST(OptimizerOfTest, NothingBehindARowIsWritten) {
  std::mt19937_64 random(NewSeed());
  for (Rule rule : kAll) {
    OnEachTarget([&](int64_t target) {
      const auto optimizer = Optimizer::Create(FullConfig(rule)).value();
      for (size_t count = 0; count < 40; ++count) {
        State<TypeParam> state(*optimizer, std::vector<TypeParam>(60, 7));
        const State<TypeParam> before = state;
        state.Apply(*optimizer, 1, RandomValues<TypeParam>(60, &random), 10,
                    10 + count);
        const auto outside = [&](const auto& now, const auto& then) {
          for (size_t i = 0; i < 60; ++i) {
            if (i >= 10 && i < 10 + count) continue;
            ASSERT_EQ(now[i], then[i]) << Name(rule) << " " << target;
          }
        };
        outside(state.value, before.value);
        for (size_t k = 0; k < state.slots.size(); ++k) {
          outside(state.slots[k], before.slots[k]);
        }
      }
    });
  }
}

// Uses gradients up to the limits of CheckGradient().
TYPED_TEST(OptimizerOfTest, FiniteGradientsNeverMakeANaN) {
  const bool f64 = sizeof(TypeParam) == 8;
  const double most = f64 ? 1e140 : 1e18, least = f64 ? 1e-320 : 1e-44;
  for (Rule rule : kAll) {
    OptimizerConfig config;
    config.rule = rule;
    config.ftrl_beta = 0;
    const auto optimizer = Optimizer::Create(config).value();
    for (double first : {0.0, least, 1.0, most}) {
      State<TypeParam> state(*optimizer, {0, 1});
      for (uint64_t step = 1; step <= 300; ++step) {
        const double next = step % 7 == 0 ? -most : step % 7 == 3 ? 0 : first;
        const auto g = static_cast<TypeParam>(step < 20 ? first : next);
        state.Apply(*optimizer, step, {g, g}, 0, 2);
        for (TypeParam value : state.value) {
          ASSERT_TRUE(std::isfinite(value)) << Name(rule) << " " << first;
        }
      }
    }
  }
}

TEST(OptimizerTest, Step0CountsAsTheFirst) {
  for (Rule rule : kAll) {
    const auto optimizer = Optimizer::Create(FullConfig(rule)).value();
    State<double> zeroth(*optimizer, {1, 2}), first(*optimizer, {1, 2});
    zeroth.Apply(*optimizer, 0, {3, 4}, 0, 2);
    first.Apply(*optimizer, 1, {3, 4}, 0, 2);
    EXPECT_TRUE(zeroth == first) << Name(rule);
    EXPECT_TRUE(std::isfinite(zeroth.value[0])) << Name(rule);
  }
}

TEST(OptimizerTest, FtrlMakesWeightsZeroThatGradientsDoNotNeed) {
  OptimizerConfig config;
  config.rule = Rule::kFtrl;
  config.lambda1 = 1;
  const auto ftrl = Optimizer::Create(config).value();
  State<float> state(*ftrl, {0, 0});
  state.Apply(*ftrl, 1, {0.5F, 2.0F}, 0, 2);
  EXPECT_EQ(state.value[0], 0);
  EXPECT_LT(state.value[1], 0);
}

TEST(OptimizerTest, SlotsHaveNamesAndFirstValues) {
  const auto names = [](Rule rule) {
    std::string all;
    const auto optimizer = Optimizer::Create(FullConfig(rule)).value();
    for (const Slot& slot : optimizer->slots()) {
      all += std::string(slot.name) + "=" + std::to_string(slot.initial) + " ";
    }
    return all;
  };
  EXPECT_EQ(names(Rule::kSgd), "");
  EXPECT_EQ(names(Rule::kMomentum), "momentum=0.000000 ");
  EXPECT_EQ(names(Rule::kNesterov), "momentum=0.000000 ");
  EXPECT_EQ(names(Rule::kAdagrad), "accumulator=0.100000 ");
  EXPECT_EQ(names(Rule::kRmsProp), "mean_square=0.000000 ");
  EXPECT_EQ(names(Rule::kAdam), "m=0.000000 v=0.000000 ");
  EXPECT_EQ(names(Rule::kAdamW), "m=0.000000 v=0.000000 ");
  EXPECT_EQ(names(Rule::kFtrl), "z=0.000000 n=0.100000 ");
}

TEST(OptimizerTest, RulesAreFoundByTheirNames) {
  for (Rule rule : kAll) EXPECT_EQ(RuleNamed(Name(rule)).value(), rule);
  EXPECT_EQ(RuleNamed("adm").status().message(),
            "no optimizer is called 'adm'; there are sgd, momentum, nesterov, "
            "adagrad, rmsprop, adam, adamw, ftrl");
}

struct Wrong {
  Rule rule;
  double OptimizerConfig::*field;
  std::vector<double> values;
  const char* name;
};

TEST(OptimizerTest, WhatIsWrongIsRefusedByName) {
  const double nan = std::nan("");
  const std::vector<double> negative = {-1, nan, HUGE_VAL, 1e39};
  const std::vector<double> decays = {-0.1, 1, 1.5, nan, 1 - 1e-9};
  const std::vector<double> not_positive = {0, -1, nan, HUGE_VAL, 1e-60};
  using C = OptimizerConfig;
  const Wrong wrong[] = {
      {Rule::kSgd, &C::weight_decay, negative, "weight_decay"},
      {Rule::kSgd, &C::clip_value, negative, "clip_value"},
      // Refuses a value that would be 0 as an f32, and would clip everything.
      {Rule::kSgd, &C::clip_value, {1e-60}, "clip_value"},
      {Rule::kMomentum, &C::momentum, decays, "momentum"},
      {Rule::kNesterov, &C::momentum, decays, "momentum"},
      {Rule::kAdagrad, &C::epsilon, not_positive, "epsilon"},
      {Rule::kAdagrad, &C::initial_accumulator, negative,
       "initial_accumulator"},
      {Rule::kRmsProp, &C::decay, decays, "decay"},
      {Rule::kRmsProp, &C::epsilon, not_positive, "epsilon"},
      {Rule::kAdam, &C::beta1, decays, "beta1"},
      {Rule::kAdam, &C::beta2, decays, "beta2"},
      {Rule::kAdam, &C::epsilon, not_positive, "epsilon"},
      {Rule::kAdamW, &C::beta1, decays, "beta1"},
      {Rule::kAdamW, &C::weight_decay, {10.5, nan}, "weight_decay"},
      {Rule::kFtrl, &C::ftrl_beta, negative, "ftrl_beta"},
      {Rule::kFtrl, &C::lambda1, negative, "lambda1"},
      {Rule::kFtrl, &C::lambda2, negative, "lambda2"},
      {Rule::kFtrl, &C::initial_accumulator, negative, "initial_accumulator"},
  };
  for (const Wrong& row : wrong) {
    for (double value : row.values) {
      OptimizerConfig config = FullConfig(row.rule);
      ASSERT_TRUE(Optimizer::Create(config).ok()) << Name(row.rule);
      config.*row.field = value;
      const absl::Status status = Optimizer::Create(config).status();
      const std::string begin =
          "optimizer " + std::string(Name(row.rule)) + ": " + row.name + " is ";
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
      EXPECT_EQ(status.message().substr(0, begin.size()), begin)
          << value << ": " << status.message();
    }
  }
}

TEST(OptimizerTest, FieldsThatARuleDoesNotUseAreNotLookedAt) {
  OptimizerConfig config;
  config.momentum = config.decay = config.beta1 = config.beta2 =
      config.epsilon = config.ftrl_beta = config.lambda1 = config.lambda2 =
          config.initial_accumulator = std::nan("");
  EXPECT_TRUE(Optimizer::Create(config).ok());
  config.rule = static_cast<Rule>(99);
  EXPECT_FALSE(Optimizer::Create(config).ok());
}

TEST(OptimizerTest, FtrlHasNoOtherScheduleThanItsOwn) {
  OptimizerConfig config = FullConfig(Rule::kFtrl);
  config.schedule.kind = Schedule::Kind::kCosine;
  config.schedule.every = 10;
  EXPECT_FALSE(Optimizer::Create(config).ok());
  config.schedule.kind = Schedule::Kind::kConstant;
  config.schedule.warm_up_steps = 1;
  EXPECT_EQ(Optimizer::Create(config).status().message(),
            "optimizer ftrl: warm_up_steps is 1: ftrl takes none");
}

}  // namespace
}  // namespace penstock::ps::optim
