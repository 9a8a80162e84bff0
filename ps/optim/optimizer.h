// How a gradient changes a value.

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

// A rule uses some of the fields; the comments say which. Defaults are those of
// PyTorch, FTRL's those of its paper.
struct OptimizerConfig {
  Rule rule = Rule::kSgd;
  Schedule schedule;  // FTRL: constant, without a warm-up

  // The gradient plus weight_decay times the value is what the rule sees (L2).
  // AdamW: each step multiplies the value by 1 - rate * weight_decay instead.
  double weight_decay = 0;
  // Elements of the gradient beyond it, on either side, become it, before
  // weight_decay is added. 0: none.
  double clip_value = 0;

  double momentum = 0.9;  // kMomentum, kNesterov; below 1
  double decay = 0.99;    // kRmsProp; below 1
  double beta1 = 0.9;     // kAdam, kAdamW; below 1
  double beta2 = 0.999;   // kAdam, kAdamW; below 1
  double epsilon = 1e-8;  // kAdagrad, kRmsProp, kAdam, kAdamW; positive
  double ftrl_beta = 1;   // kFtrl
  double lambda1 = 0;     // kFtrl: L1, which makes weights 0
  double lambda2 = 0;     // kFtrl: L2
  // What the sum of squares begins with: kAdagrad, kFtrl.
  double initial_accumulator = 0;
};

// What is kept for each element of a value beside it, of the value's type.
struct Slot {
  absl::string_view name;  // lives for ever
  double initial;
};

// A rule with its numbers. Immutable: any thread may use it. Values, slots and
// the number of steps belong to the caller.
class Optimizer {
 public:
  // Returns INVALID_ARGUMENT, which names the field, if a field that the rule
  // uses is NaN, infinite, also as an f32, or out of its range.
  static absl::StatusOr<std::shared_ptr<const Optimizer>> Create(
      const OptimizerConfig& config);

  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  const OptimizerConfig& config() const { return config_; }

  // Returns at most kMostSlots, in the order in which Apply() takes them.
  absl::Span<const Slot> slots() const { return slots_; }

  // Returns what the step of that number, from 1, needs; 0 counts as 1. Costs a
  // few powers: call it once for a step, not for each row.
  Scalars ScalarsOf(uint64_t step) const;

  // Applies `gradient` to `value`, into `updated`, and changes the slots, all
  // of `count` elements: a dense block, or the row of a table. For a row, a
  // call costs a few nanoseconds beside its elements' work.
  //
  // `updated` is `value`, or overlaps with nothing else; so does each slot.
  // Each has the alignment of its type. Only finite gradients keep values and
  // slots so: see CheckGradient(). Same inputs give the same bits on each
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
