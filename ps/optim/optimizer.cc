#include "ps/optim/optimizer.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ps/optim/range.h"

namespace penstock::ps::optim {
namespace {

absl::Status First(std::initializer_list<absl::Status> checks) {
  for (const absl::Status& check : checks) {
    if (!check.ok()) return check;
  }
  return absl::OkStatus();
}

absl::Status CheckEpsilon(const OptimizerConfig& config) {
  return CheckRange("epsilon", config.epsilon, kSmallestF32, kLargestF32);
}

absl::Status CheckAccumulator(const OptimizerConfig& config) {
  return CheckRange("initial_accumulator", config.initial_accumulator, 0,
                    kLargestF32);
}

// Checks the settings of FTRL. Requires a constant rate, because alpha / (beta
// + sqrt(n)) is FTRL's schedule. Values follow from sums over all steps, so a
// change of alpha would make them jump.
absl::Status CheckFtrl(const OptimizerConfig& config) {
  if (config.schedule.kind != Schedule::Kind::kConstant) {
    return absl::InvalidArgumentError(
        absl::StrCat("schedule is ", Name(config.schedule.kind),
                     ": ftrl takes a constant one, for it has its own"));
  }
  if (config.schedule.warm_up_steps != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("warm_up_steps is ", config.schedule.warm_up_steps,
                     ": ftrl takes none"));
  }
  return First({
      CheckRange("learning_rate", config.schedule.learning_rate,
                 1 / kLargestF32, 1 / kSmallestF32),
      CheckRange("ftrl_beta", config.ftrl_beta, 0, kLargestF32),
      CheckRange("lambda1", config.lambda1, 0, kLargestF32),
      CheckRange("lambda2", config.lambda2, 0, kLargestF32),
      CheckAccumulator(config),
  });
}

// The exclusive upper bound of a decay. Above it, a decay would round to 1 in
// f32 and never forget, and 1 - decay would be 0.
constexpr double kDecayEnd = 1 - 0x1p-24;

absl::Status CheckRule(const OptimizerConfig& config) {
  switch (config.rule) {
    case Rule::kSgd:
      return absl::OkStatus();
    case Rule::kMomentum:
    case Rule::kNesterov:
      return CheckBelow("momentum", config.momentum, 0, kDecayEnd);
    case Rule::kAdagrad:
      return First({CheckEpsilon(config), CheckAccumulator(config)});
    case Rule::kRmsProp:
      return First({CheckBelow("decay", config.decay, 0, kDecayEnd),
                    CheckEpsilon(config)});
    case Rule::kAdam:
    case Rule::kAdamW:
      return First({CheckBelow("beta1", config.beta1, 0, kDecayEnd),
                    CheckBelow("beta2", config.beta2, 0, kDecayEnd),
                    CheckEpsilon(config)});
    case Rule::kFtrl:
      return CheckFtrl(config);
  }
  return absl::InvalidArgumentError("rule is none of the known ones");
}

absl::Status CheckClip(const OptimizerConfig& config) {
  if (config.clip_value == 0) return absl::OkStatus();
  return CheckRange("clip_value", config.clip_value, kSmallestF32, kLargestF32);
}

// Returns an upper bound of all rates of the schedule.
double LargestRate(const Schedule& schedule) {
  return schedule.kind == Schedule::Kind::kCosine
             ? std::max(schedule.learning_rate, schedule.final_rate)
             : schedule.learning_rate;
}

absl::Status CheckDecay(const OptimizerConfig& config) {
  absl::Status status =
      CheckRange("weight_decay", config.weight_decay, 0, kLargestF32);
  if (!status.ok() || config.rule != Rule::kAdamW) return status;
  const double shrink = LargestRate(config.schedule) * config.weight_decay;
  if (shrink <= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("weight_decay is ", config.weight_decay,
                   ": times the learning rate it is ", shrink,
                   ", which would turn the sign of each value"));
}

std::vector<Slot> SlotsOf(const OptimizerConfig& config) {
  switch (config.rule) {
    case Rule::kSgd:
      return {};
    case Rule::kMomentum:
    case Rule::kNesterov:
      return {{"momentum", 0}};
    case Rule::kAdagrad:
      return {{"accumulator", config.initial_accumulator}};
    case Rule::kRmsProp:
      return {{"mean_square", 0}};
    case Rule::kAdam:
    case Rule::kAdamW:
      return {{"m", 0}, {"v", 0}};
    case Rule::kFtrl:
      return {{"z", 0}, {"n", config.initial_accumulator}};
  }
  return {};
}

// Returns 1 - decay^step, with full precision even if decay^step is nearly 1.
double OneLessPower(double decay, uint64_t step) {
  return -std::expm1(static_cast<double>(step) * std::log(decay));
}

template <typename T>
Constants<T> Rounded(const Constants<double>& exact) {
  Constants<T> result;
  result.clip = static_cast<T>(exact.clip);
  result.l2 = static_cast<T>(exact.l2);
  result.rate = static_cast<T>(exact.rate);
  result.keep = static_cast<T>(exact.keep);
  result.decay1 = static_cast<T>(exact.decay1);
  result.rest1 = static_cast<T>(exact.rest1);
  result.decay2 = static_cast<T>(exact.decay2);
  result.rest2 = static_cast<T>(exact.rest2);
  result.correct = static_cast<T>(exact.correct);
  result.epsilon = static_cast<T>(exact.epsilon);
  result.inverse_rate = static_cast<T>(exact.inverse_rate);
  result.beta = static_cast<T>(exact.beta);
  result.lambda1 = static_cast<T>(exact.lambda1);
  result.lambda2 = static_cast<T>(exact.lambda2);
  return result;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Optimizer>> Optimizer::Create(
    const OptimizerConfig& config) {
  const absl::Status status = First({
      config.schedule.Check(),
      CheckRule(config),
      CheckClip(config),
      CheckDecay(config),
  });
  if (!status.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("optimizer ", Name(config.rule), ": ", status.message()));
  }
  return std::shared_ptr<const Optimizer>(new Optimizer(config));
}

Optimizer::Optimizer(const OptimizerConfig& config)
    : config_(config), kernels_(KernelsOf(config.rule)) {
  const std::vector<Slot> slots = SlotsOf(config);
  std::copy(slots.begin(), slots.end(), slot_array_);
  slots_ = absl::MakeConstSpan(slot_array_, slots.size());
}

Scalars Optimizer::ScalarsOf(uint64_t step) const {
  step = std::max<uint64_t>(step, 1);
  const double rate = config_.schedule.RateOf(step);
  Constants<double> c = {};
  c.clip = config_.clip_value > 0 ? config_.clip_value
                                  : std::numeric_limits<double>::infinity();
  c.l2 = config_.rule == Rule::kAdamW ? 0 : config_.weight_decay;
  c.rate = rate;
  c.keep = 1;
  switch (config_.rule) {
    case Rule::kSgd:
      break;
    case Rule::kMomentum:
    case Rule::kNesterov:
      c.decay1 = config_.momentum;
      break;
    case Rule::kAdagrad:
      c.epsilon = config_.epsilon;
      break;
    case Rule::kRmsProp:
      c.decay2 = config_.decay;
      c.rest2 = 1 - config_.decay;
      c.epsilon = config_.epsilon;
      break;
    case Rule::kAdamW:
      c.keep = 1 - rate * config_.weight_decay;
      [[fallthrough]];
    case Rule::kAdam:
      c.rate = rate / OneLessPower(config_.beta1, step);
      c.decay1 = config_.beta1;
      c.rest1 = 1 - config_.beta1;
      c.decay2 = config_.beta2;
      c.rest2 = 1 - config_.beta2;
      c.correct = 1 / std::sqrt(OneLessPower(config_.beta2, step));
      c.epsilon = config_.epsilon;
      break;
    case Rule::kFtrl:
      c.inverse_rate = 1 / rate;
      c.beta = config_.ftrl_beta;
      c.lambda1 = config_.lambda1;
      c.lambda2 = config_.lambda2;
      break;
  }
  return {Rounded<float>(c), c};
}

}  // namespace penstock::ps::optim
