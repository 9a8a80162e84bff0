// Applies gradients to values by a rule.

#ifndef PENSTOCK_PS_OPTIM_OPTIMIZER_H_
#define PENSTOCK_PS_OPTIM_OPTIMIZER_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ps/optim/kernels.h"
#include "ps/optim/rule.h"
#include "ps/optim/scalars.h"
#include "ps/optim/schedule.h"

namespace penstock::ps::optim {

// The settings of a rule. The comment of a setting names the rules that use it.
// The defaults are PyTorch's; FTRL's are those of its paper.
struct OptimizerConfig {
  Rule rule = Rule::kSgd;
  Schedule schedule;  // FTRL: constant, without a warm-up

  // The weight decay. The rules add weight_decay times the value to the
  // gradient (L2). AdamW instead multiplies the value by 1 - rate *
  // weight_decay at each step.
  double weight_decay = 0;
  // Limits the magnitude of each element of the gradient, before weight_decay
  // is added. 0 means no limit.
  double clip_value = 0;

  double momentum = 0.9;  // kMomentum, kNesterov; below 1
  double decay = 0.99;    // kRmsProp; below 1
  double beta1 = 0.9;     // kAdam, kAdamW; below 1
  double beta2 = 0.999;   // kAdam, kAdamW; below 1
  double epsilon = 1e-8;  // kAdagrad, kRmsProp, kAdam, kAdamW; positive
  double ftrl_beta = 1;   // kFtrl
  double lambda1 = 0;     // kFtrl: L1, which makes weights 0
  double lambda2 = 0;     // kFtrl: L2
  // The initial sum of squares: kAdagrad, kFtrl.
  double initial_accumulator = 0;
};

// A state of the optimizer, such as a momentum. Has one element for each
// element of the value, in the value's type.
struct Slot {
  absl::string_view name;  // static lifetime
  double initial;
};

// A rule with its settings. Immutable and thread-safe. The caller owns values,
// slots and the step count.
class Optimizer {
 public:
  // Makes an optimizer. Returns INVALID_ARGUMENT, naming the field, if a field
  // that the rule uses is NaN, infinite (also after rounding to f32), or out of
  // its range.
  static absl::StatusOr<std::shared_ptr<const Optimizer>> Create(
      const OptimizerConfig& config);

  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  const OptimizerConfig& config() const { return config_; }

  // Returns the slots of the rule, at most kMostSlots, in the order of
  // Apply()'s argument.
  absl::Span<const Slot> slots() const { return slots_; }

  // Returns the scalars of a step. The first step is 1; 0 counts as 1. Computes
  // a few powers: call once per step, not per row.
  Scalars ScalarsOf(uint64_t step) const;

  // Applies `gradient` to `value`, writes the result to `updated`, and changes
  // the slots. All arrays have `count` elements: those of a dense block, or of
  // a row. A call costs a few nanoseconds in addition to the work on the
  // elements.
  //
  // `updated` may be `value`; otherwise no two arrays overlap. Each array has
  // its type's alignment. Values and slots stay finite only for finite
  // gradients; see CheckGradient(). The same inputs give the same bits on each
  // machine, however a value is divided into calls.
  void Apply(const Scalars& scalars, const float* gradient, const float* value,
             float* updated, float* const* slots, size_t count) const {
    kernels_.f32(scalars.f32, gradient, value, updated, slots, count);
  }
  void Apply(const Scalars& scalars, const double* gradient,
             const double* value, double* updated, double* const* slots,
             size_t count) const {
    kernels_.f64(scalars.f64, gradient, value, updated, slots, count);
  }

 private:
  explicit Optimizer(const OptimizerConfig& config);

  const OptimizerConfig config_;
  const Kernels kernels_;
  Slot slot_array_[kMostSlots];
  absl::Span<const Slot> slots_;
};

}  // namespace penstock::ps::optim

#endif  // PENSTOCK_PS_OPTIM_OPTIMIZER_H_
